import type { Operation } from '../operation.ts'
import { answerQuery } from './answer-query.ts'
import { listQuestion } from './list-question.ts'

export const listRecords: Operation<'listRecords'> = async (call, { body }) =>
  answerQuery(call, await listQuestion(call, body))
