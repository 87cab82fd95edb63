import { tollbase } from './contract.ts'
import { errors } from './errors.ts'
import type { Route } from './route.ts'

/** docs/errors.md: every code with its status, its sentence and the endpoints that name it. */
export function errorsPage(): string {
  const rows = Object.entries(errors).map(
    ([code, { status, text }]) => `| \`${code}\` | ${status} | ${text} | ${usersOf(code)} |`,
  )
  return [
    '# Errors',
    '',
    'Every refusal is JSON: `{error, code, details?, request_id}`; a 402 is an x402 answer instead. `error` is for people and may name what you sent, `code` is for programs and never changes its meaning, `details.field` is a JSON pointer where one field is at fault, and `request_id` is what to quote to the operator. A 429 and a 503 carry `Retry-After`.',
    '',
    'The order in which a request is judged: 401, 403 and 404, then 400, then 402. A request that would be refused with 400 is refused before anyone is asked to pay.',
    '',
    '| code | status | meaning | endpoints that name it |',
    '|---|---|---|---|',
    ...rows,
    '',
  ].join('\n')
}

function usersOf(code: string): string {
  const routes: readonly (readonly [string, Route])[] = Object.entries(tollbase)
  const users = routes.filter(([, route]) => route.errors?.some((one) => one === code))
  return users.length === 0 ? 'any' : users.map(([id]) => `\`${id}\``).join(', ')
}
