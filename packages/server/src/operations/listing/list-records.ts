import { answerQuery } from '../../services/reading/answer-query.ts'
import { prepareListRead } from '../../services/reading/prepare-list-read.ts'
import type { Operation } from '../operation.ts'

export const listRecords: Operation<'listRecords'> = async (call, { body }) =>
  answerQuery(call, await prepareListRead(call, body))
