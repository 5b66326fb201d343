interface Field {
  example: unknown;
  required?: boolean;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
}

/**
 * Makes inputs from the fields of a Swagger schema: inputs at its limits, which must be accepted, and inputs just beyond
 * them, which must be rejected. Each input differs from the example of the schema in one field.
 */
export function inputsBySchema(schema: object): { accepted: object[]; rejected: object[] } {
  const fields = Object.entries(schema as Record<string, Field>);
  const example = Object.fromEntries(fields.map(([name, field]) => [name, field.example]));
  const [accepted, rejected] = [[example], [] as object[]];
  for (const [name, { required = true, minLength, maxLength, minItems }] of fields) {
    (required ? rejected : accepted).push({ ...example, [name]: undefined });
    const text = (length: number) => ({ ...example, [name]: 'x'.repeat(length) });
    const list = (length: number) => ({ ...example, [name]: Array<string>(length).fill('x') });
    const limits: [typeof text, number | undefined, -1 | 1][] = [
      [text, minLength, -1],
      [text, maxLength, 1],
      [list, minItems, -1],
    ];
    for (const [make, limit, beyond] of limits) {
      if (limit === undefined) continue;
      accepted.push(make(limit));
      rejected.push(make(limit + beyond));
    }
  }
  return { accepted, rejected };
}
