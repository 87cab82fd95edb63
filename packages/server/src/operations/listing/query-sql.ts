import { type AnswerParts, answerQuery } from '../../services/reading/answer-query.ts'
import type { SourceParts } from '../../services/reading/authorize-sources.ts'
import { prepareSqlRead } from '../../services/reading/prepare-sql-read.ts'
import type { Operation } from '../operation.ts'

export const querySql: Operation<'querySql', SourceParts | AnswerParts> = async (call, { body }) =>
  answerQuery(call, await prepareSqlRead(call, body))
