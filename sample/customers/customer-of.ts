import {
  type Customer,
  type CustomersService,
  type ServiceApiError,
  type ServiceHttpService,
} from 'nestjs-service';

/**
 * Creates the customer of one of our users, or finds the existing one: the service accepts each app_user_id only once. See
 * docs/recipes.md.
 */
export async function customerOf(customers: CustomersService, http: ServiceHttpService, app_user_id: string) {
  const find = () =>
    http.find<Customer>('/customers/v1/app-user-id/{app_user_id}', { pathParams: { app_user_id } });
  let failure: unknown = new Error('The service does not show the customer that it has just created');
  try {
    const created = await customers.create({ app_user_id });
    // The service may answer 201 without a body.
    if (created) return created;
  } catch (error) {
    const { body, outcomeUnknown } = error as Partial<ServiceApiError>;
    if (body?.status !== 'CUSTOMER_ALREADY_EXISTS' && !outcomeUnknown) throw error;
    failure = error;
  }
  const found = await find();
  if (!found) throw failure;
  return found;
}
