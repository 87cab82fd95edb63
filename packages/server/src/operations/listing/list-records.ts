import { type AnswerParts, answerQuery } from '../../services/reading/answer-query.ts'
import { type ListParts, prepareListRead } from '../../services/reading/prepare-list-read.ts'
import type { Operation } from '../operation.ts'

/** Lists records. `answerQuery` decides whether the list has a price; `Payments` (services/payments/payments.ts) describes its sale. */
export const listRecords: Operation<'listRecords', ListParts | AnswerParts> = async (
  call,
  { body },
) => answerQuery(call, await prepareListRead(call, body))
