import type { Tollbase } from '@tollbase/contract/contract'
import type { Input } from '@tollbase/contract/route'
import type { Call } from '../call.ts'
import type { ReadRequest } from './answer-query.ts'
import { type ListParts, prepareListRead } from './prepare-list-read.ts'
import { prepareSqlRead } from './prepare-sql-read.ts'

export type AnyQuery = Input<Tollbase['explainQuery']>['body']['query']

/** Checks a query and authorizes it for the caller as if it were run: SQL, or a list of the root. */
export function prepareAnyRead(
  call: Call<ListParts>,
  query: AnyQuery,
  root: string,
): Promise<ReadRequest> {
  const { sql } = query
  return sql === undefined
    ? prepareListRead(call, { ...query, root })
    : prepareSqlRead(call, { ...query, sql })
}
