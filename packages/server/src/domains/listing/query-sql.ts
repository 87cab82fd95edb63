import type { Operation } from '../operation.ts'
import { answerQuery } from './answer-query.ts'
import { sqlQuestion } from './sql-question.ts'

export const querySql: Operation<'querySql'> = async (call, { body }) =>
  answerQuery(call, await sqlQuestion(call, body))
