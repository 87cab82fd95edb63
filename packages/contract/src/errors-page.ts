import { tollbase } from './contract.ts'
import { errors } from './errors.ts'
import { listErrorCodes } from './openapi.ts'
import { canChange, type Route } from './route.ts'

/** The steps in which a request is judged, in order; tests/access/order.test.ts asks every endpoint. */
const order = [
  '**The request as such**, whoever sends it: an address or a header that cannot be read (400) or is too large (431), no such endpoint (404 `ROUTE_NOT_FOUND`, 405), a body that comes too late (408) or is too large (413). A limit that is used up answers 429 or 503 at any step.',
  '**The caller**: two different keys, or one header twice (400), then a key or a signature that is not valid (401). This holds for public endpoints too.',
  '**Rights**: 401, 403 or 404 for the first thing that the request addresses and you may not use: its application; the collection, view, query, index, relation, data set, key or grant that its path names; the `root` of a list; the collections of an SQL statement; the subject of a quote. A thing that you may not know of is 404, as if it did not exist. A body that is not JSON, a `root` that is not `app::collection` and SQL that cannot be parsed address nothing.',
  '**Shape**: 400 for path, query string and body. The body is read as JSON whatever its `Content-Type` says, so there is no 415.',
  '**The data**, in the order in which the request meets it: fields and uses that a collection does not offer (403 `FIELD_NOT_OFFERED` and its like); sources that a body mentions beside those that it addresses, records, entries of the chain, tasks, payments and receipts that do not exist (404); things that exist already or have changed (409, 412); records that break their schema (422); and 400 for requests that are invalid only because of the data, such as a list without a limit if rows have a price.',
  '**Price**: if the request costs something, a payment that cannot be read (400 `PAYMENT_MALFORMED`), then 402.',
] as const

/** docs/errors.md: every code with its status, its sentence and the endpoints that can answer it. */
export function renderErrorsPage(): string {
  const rows = Object.entries(errors).map(
    ([code, { status, text }]) => `| \`${code}\` | ${status} | ${text} | ${formatUsers(code)} |`,
  )
  return [
    '# Errors',
    '',
    'You got an error and want to know what to do. Every error is JSON: `{error, code, details?, request_id}`; only a 402 is an x402 reply instead. `error` is for people and may repeat parts of your request. `code` is for programs and never changes its meaning. If one field is at fault, `details.field` is its JSON pointer. Give `request_id` to the operator when you ask for help. A 429 and a 503 have `Retry-After`.',
    '',
    '## The order',
    '',
    'A request that is wrong in several ways gets the refusal that comes first here:',
    '',
    ...order.map((step, at) => `${at + 1}. ${step}`),
    '',
    'The first four steps come before anyone is asked to pay.',
    '',
    '## The codes',
    '',
    '`/docs` of the running service lists for each endpoint its codes, who may call it, and whether it can cost something. [openapi.json](openapi.json) does, too (`x-error-codes`, `x-access`, `x-paid`).',
    '',
    '| code | status | meaning | endpoints that can answer it |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

/** The most endpoints that a row names; longer rows hide the table. */
const namedUsersMax = 16

type Group = { readonly says: string; readonly has: (route: Route) => boolean }

/** The words that stand for the names of many endpoints, by what these have in common; a larger group before a smaller one. */
const groups: readonly Group[] = [
  { says: 'all', has: () => true },
  { says: 'all that are not public', has: ({ access }) => access !== 'public' },
  { says: 'all with `{app}` in their path', has: ({ path }) => path.includes('/:app') },
  { says: 'all but GET', has: ({ method }) => method !== 'GET' },
  { says: 'all that change something', has: canChange },
  { says: 'all that can cost something', has: ({ paid }) => paid === true },
]

/** Answers to requests that reach no endpoint. */
const elsewhere: Readonly<Record<string, string>> = {
  ROUTE_NOT_FOUND: 'addresses of no endpoint',
  METHOD_NOT_ALLOWED: 'all, asked by another method',
}

type Named = readonly [id: string, route: Route]

function formatUsers(code: string): string {
  const routes: readonly Named[] = Object.entries(tollbase)
  const users = routes.filter(([, route]) => listErrorCodes(route).some((one) => one === code))
  const outside = elsewhere[code]
  const words = outside === undefined ? [] : [outside]
  let left = users
  for (const { says, has } of groups) {
    const members = routes.filter(([, route]) => has(route))
    const isWhole = members.every((one) => users.includes(one))
    if (!isWhole || !members.some((one) => left.includes(one))) continue
    words.push(says)
    left = left.filter((one) => !members.includes(one))
  }
  if (left.length > namedUsersMax) return `${users.length} endpoints`
  return [...words, ...left.map(([id]) => `\`${id}\``)].join(', ')
}
