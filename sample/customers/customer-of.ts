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
  const pathParams = { app_user_id };
  const find = () => http.get<Customer>('/customers/v1/app-user-id/{app_user_id}', { pathParams });
  try {
    // The service may answer 201 without a body.
    return (await customers.create({ app_user_id })) ?? (await find());
  } catch (error) {
    const { body, outcomeUnknown } = error as Partial<ServiceApiError>;
    if (body?.status !== 'CUSTOMER_ALREADY_EXISTS' && !outcomeUnknown) throw error;
    return find().catch((fault: Partial<ServiceApiError>) => {
      throw fault.status === 404 ? error : fault;
    });
  }
}
