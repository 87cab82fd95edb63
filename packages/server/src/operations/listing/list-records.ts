import { type AnswerParts, answerQuery } from '../../services/reading/answer-query.ts'
import { type ListParts, prepareListRead } from '../../services/reading/prepare-list-read.ts'
import type { Operation } from '../operation.ts'

/** Lists records. `Payments` (services/payments/payments.ts) describes the sale of a list that has a price. */
export const listRecords: Operation<'listRecords', ListParts | AnswerParts> = async (
  call,
  { body },
) => answerQuery(call, await prepareListRead(call, body))
