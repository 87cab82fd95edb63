import { tollbase } from './contract.ts'
import { errors } from './errors.ts'
import type { Route } from './route.ts'

/** The steps in which a request is judged, in order; tests/access/order.test.ts asks every endpoint. */
const order = [
  '**The request as such**, whoever sends it: an address or a header that cannot be read (400), one that is too large (431), no such endpoint (404 `ROUTE_NOT_FOUND`, 405), a body that comes too late or is too large (408, 413). A limit that is used up answers 429 or 503 at any step.',
  '**Who calls**: two different keys, or one header twice (400), then a key or a signature that is not good (401), public endpoints included.',
  '**Rights**: 401, 403 or 404 of what the request addresses, the first of several: its application; the collection, view, query, index, relation, data set, key or grant that its path names; the `root` of a list; the collections of an SQL statement; what a quote is of. What you may not know of is 404, as if it were not there. A body that is no JSON, a `root` that is not `app::collection` and SQL that cannot be parsed address nothing.',
  '**Shape**: 400 of path, query string and body. The body is read as JSON whatever its `Content-Type` says, so there is no 415.',
  '**What it comes upon**, as it does: what a list or a statement may use of a collection (403 `FIELD_NOT_OFFERED` and its like), sources that a body mentions beside what it addresses, records, entries of the chain, tasks, payments and receipts (404), what is there already or has changed (409, 412), records against their schema (422), and 400 for what is wrong by these alone, such as a list without a limit where rows have a price.',
  '**Price**: where something is owed, a payment that cannot be read (400 `PAYMENT_MALFORMED`), then 402.',
] as const

/** docs/errors.md: every code with its status, its sentence and the endpoints that name it. */
export function renderErrorsPage(): string {
  const rows = Object.entries(errors).map(
    ([code, { status, text }]) => `| \`${code}\` | ${status} | ${text} | ${formatUsers(code)} |`,
  )
  return [
    '# Errors',
    '',
    'Every refusal is JSON: `{error, code, details?, request_id}`; a 402 is an x402 answer instead. `error` is for people and may name what you sent, `code` is for programs and never changes its meaning, `details.field` is a JSON pointer where one field is at fault, and `request_id` is what to quote to the operator. A 429 and a 503 carry `Retry-After`.',
    '',
    '## The order',
    '',
    'A request that is wrong in several ways gets the refusal that comes first here:',
    '',
    ...order.map((step, at) => `${at + 1}. ${step}`),
    '',
    'What the first four steps refuse is refused before anyone is asked to pay.',
    '',
    '## The codes',
    '',
    '| code | status | meaning | endpoints that name it |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

function formatUsers(code: string): string {
  const routes: readonly (readonly [string, Route])[] = Object.entries(tollbase)
  const users = routes.filter(([, route]) => route.errors?.some((one) => one === code))
  return users.length === 0 ? 'any' : users.map(([id]) => `\`${id}\``).join(', ')
}
