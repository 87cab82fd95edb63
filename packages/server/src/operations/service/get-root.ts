import type { Operation } from '../operation.ts'

export const getRoot: Operation<'getRoot', 'program'> = async ({ service }) => ({
  status: 'ok',
  version: service.program.version,
})
