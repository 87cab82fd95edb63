import { expect, test } from 'vitest'
import { Fault } from '../../base/fault.ts'
import type { KeptQuery } from '../../model/stored-query.ts'
import type { Tenant } from '../applications/tenants.ts'
import { QueryRates } from './query-rates.ts'

const makeTenant = (number: number) => ({ application: { number } }) as unknown as Tenant
const makeQuery = (name: string): KeptQuery => ({
  ...{ name, version: 1, parameters: [], sources: ['c'], created_at: '2026-01-01T00:00:00.000Z' },
  rate_limit: { requests: 1, window_seconds: 86_400 },
})

type Asked = { readonly app: number; readonly query: string; readonly address?: string }

function canTake(rates: QueryRates, { app, query, address = '192.0.2.1' }: Asked): boolean {
  try {
    const visit = { caller: { kind: 'anonymous' }, address, nowMs: 0 } as const
    rates.take(visit, makeTenant(app), makeQuery(query))
    return true
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

test('the callers of one application, however many queries they ask for, leave the rates of others as they are', () => {
  const rates = new QueryRates({ bytesMax: 400_000, shareBytesMax: 200_000 })
  expect(canTake(rates, { app: 1, query: 'slow' })).toBe(true)
  for (let at = 0; at < 1_001; at++) canTake(rates, { app: 2, query: `q${at}` })
  for (let at = 0; at < 1_001; at++) {
    canTake(rates, { app: 2, query: 'q', address: `192.0.${at >> 8}.${at & 255}` })
  }
  expect(canTake(rates, { app: 1, query: 'slow' })).toBe(false)
  expect(rates.bytes).toBeLessThan(202_000)
})
