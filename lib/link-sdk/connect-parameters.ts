/** What the browser's `Service.connect()` takes (specification 2.4): only what may reach a browser. */
export interface ConnectParameters {
  /** The app token: without OAuth, or where `linkSdk.includeAppToken` says so. */
  app_token?: string;
  /** The customer-scoped token (specification 5.4.8): with OAuth. */
  access_token?: string;
  customer_id: string;
  permissions: string[];
  bank_identifier?: string;
}
