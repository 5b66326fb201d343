export const reported = [];
export const captureException = (error) => void reported.push(error);
