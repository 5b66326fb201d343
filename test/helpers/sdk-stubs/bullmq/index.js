export class UnrecoverableError extends Error {}
