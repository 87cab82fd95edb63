import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { tollbase } from '@tollbase/contract/contract'
import { errors } from '@tollbase/contract/errors'
import { renderErrorsPage } from '@tollbase/contract/errors-page'
import { listErrorCodes } from '@tollbase/contract/openapi'
import type { Route } from '@tollbase/contract/route'
import { describe, expect, test } from 'vitest'

const root = fileURLToPath(new URL('../..', import.meta.url))

describe('the error catalogue', () => {
  test('docs/errors.md is this catalogue; `npm run openapi` writes it anew', () => {
    expect(readFileSync(join(root, 'docs/errors.md'), 'utf8')).toBe(renderErrorsPage())
  })

  test('docs/errors.md names for each code all endpoints that can answer it, by a common property where they have one', () => {
    const users = new Map(
      [...renderErrorsPage().matchAll(/^\| `(\w+)` .* \| (.+) \|$/gm)].map(
        ([, code = '', cell = '']) => [code, cell] as const,
      ),
    )
    expect([...users.keys()]).toEqual(Object.keys(errors))
    expect(Object.fromEntries(users)).toMatchObject({
      RATE_LIMITED: 'all',
      UNAUTHORIZED: 'all',
      OFFER_CHANGED: 'all that can cost something',
      PAYMENT_MALFORMED: 'all that can cost something, `verifyPayment`, `settlePayment`',
      PAYMENT_REQUIRED: 'all that can cost something',
      IDEMPOTENCY_KEY_USED: 'all that change something',
      ROUTE_NOT_FOUND: 'addresses of no endpoint, `requestFaucet`',
      METHOD_NOT_ALLOWED: 'all, asked by another method',
    })
    const routes = Object.entries<Route>(tollbase)
    for (const [code, cell] of users) {
      const able = routes.filter(([, route]) => listErrorCodes(route).some((one) => one === code))
      const isCounted = cell === `${able.length} endpoints`
      const named = [...cell.matchAll(/`(\w+)`/g)].map(([, id]) => id)
      if (!cell.startsWith('all') && !isCounted) expect(named, code).toEqual(able.map(([id]) => id))
    }
  })

  test('the catalogue has no code that the server never answers', () => {
    const sources = readdirSync(join(root, 'packages'), { recursive: true, encoding: 'utf8' })
      .filter((file) => /^(server|contract)\/src\/.*(?<!\.test)\.ts$/.test(file))
      .filter((file) => !file.endsWith('errors.ts'))
      .map((file) => readFileSync(join(root, 'packages', file), 'utf8'))
      .join('\n')
    const unused = Object.keys(errors).filter((code) => !sources.includes(`'${code}'`))
    expect(unused).toEqual([])
  })
})
