/** A rule for reading, of the collection `sales` unless another target is given. */
export const perRow = (amount: string, target: object = { collection: 'sales' }) => ({
  target,
  operation: 'read',
  model: 'per_row',
  amount,
})

export const perAccess = (amount: string) => ({ ...perRow(amount), model: 'per_access' })

/** The members that name a rule. */
export const nameRule = ({ target, operation, model }: ReturnType<typeof perRow>) => ({
  target,
  operation,
  model,
})
