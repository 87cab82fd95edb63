import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import type { Call } from '../call.ts'
import type { Question } from './answer-query.ts'
import { listQuestion } from './prepare-list-read.ts'
import { sqlQuestion } from './prepare-sql-read.ts'

export type AnyQuery = Input<Tollbase['explainQuery']>['body']['query']

/** The query, checked and judged for the caller as if it were asked: SQL, or a list of the root. */
export function anyQuestion(call: Call, query: AnyQuery, root: string): Promise<Question> {
  const { sql } = query
  return sql === undefined
    ? listQuestion(call, { ...query, root })
    : sqlQuestion(call, { ...query, sql })
}
