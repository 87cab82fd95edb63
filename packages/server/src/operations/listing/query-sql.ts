import { answerQuery } from '../../services/reading/answer-query.ts'
import { prepareSqlRead } from '../../services/reading/prepare-sql-read.ts'
import type { Operation } from '../operation.ts'

export const querySql: Operation<'querySql'> = async (call, { body }) =>
  answerQuery(call, await prepareSqlRead(call, body))
