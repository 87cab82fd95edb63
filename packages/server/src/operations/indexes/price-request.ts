import { limits } from '@tollbase/contract/limits'
import { parseWholeUnits } from '../../base/decimal.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { FieldPrice } from '../../model/definitions.ts'
import { moneyDecimals } from '../../model/field-price.ts'

/** Atomic units. */
export type ReadPrice = { readonly per_access?: string; readonly per_kb?: string }

const pricingModel = 'per_record'

/** `price_config` of a price index: fractions (0.8) or percents (80); the platform gets at least its own share. */
export function parseFieldPrice(config: unknown): FieldPrice {
  const sent = isRecord(config) ? config : {}
  const app = parseShare(sent, 'app_owner_percentage')
  const platform = parseShare(sent, 'platform_percentage')
  if (app !== undefined && platform !== undefined && !isWhole(app + platform)) {
    throw makeInvalidFault('/price_config', 'must have two percentages that make up 1 (or 100)')
  }
  const isPercent = (app ?? 0) > 1 || (platform ?? 0) > 1
  const part = platform ?? (app === undefined ? 0 : (isPercent ? 100 : 1) - app)
  const points = part * (isPercent ? 100 : 10_000)
  const rounded = Math.round(points)
  if (Math.abs(points - rounded) > 1e-6 || rounded > 10_000)
    throw makeInvalidFault(
      '/price_config/platform_percentage',
      'must be in hundredths of a percent',
    )
  return { platform_basis_points: rounded, owner: parseOwner(sent.app_owner_address) }
}

function parseShare(config: Readonly<Record<string, unknown>>, name: string): number | undefined {
  const share = config[name]
  if (share === undefined || share === null) return undefined
  if (typeof share !== 'number' || !(share >= 0 && share <= 100))
    throw makeInvalidFault(`/price_config/${name}`, 'must be a number from 0 to 100')
  return share
}

function isWhole(sum: number): boolean {
  return Math.abs(sum - 1) < 1e-9 || Math.abs(sum - 100) < 1e-9
}

function parseOwner(address: unknown): string | null {
  if (address === undefined || address === null || address === '') return null
  if (typeof address !== 'string' || !/^0x[0-9a-fA-F]{40}$/.test(address))
    throw makeInvalidFault('/price_config/app_owner_address', 'must be an EVM address, or empty')
  return address.toLowerCase()
}

/** `price_config {pricing_model: "per_record", price_per_record}`: a price of each record written, in atomic units. */
export function parseRecordPrice(config: unknown): string | undefined {
  if (!isRecord(config) || config.pricing_model !== pricingModel) return undefined
  const amount = parseAtomic(config.price_per_record, '/price_config/price_per_record')
  if (amount === undefined) throw makeInvalidFault('/price_config/price_per_record', 'is needed')
  return amount
}

/** The clients write whole tokens as floats (0.001), or millionths as integers. */
export function parseReadPrice(config: unknown): ReadPrice | undefined {
  if (!isRecord(config)) return undefined
  const perAccess = parseAmount(config, 'price_per_access')
  const perKb = parseAmount(config, 'price_per_kb')
  if (perAccess === undefined && perKb === undefined) return undefined
  return {
    ...(perAccess !== undefined && { per_access: perAccess }),
    ...(perKb !== undefined && { per_kb: perKb }),
  }
}

function parseAmount(config: Readonly<Record<string, unknown>>, name: string): string | undefined {
  const whole = config[`${name}_tia`]
  if (whole === undefined || whole === null)
    return parseAtomic(config[name], `/read_price_config/${name}`)
  const atomic = parseWholeUnits(JSON.stringify(whole), moneyDecimals)
  if (typeof atomic === 'string') throw makeInvalidFault(`/read_price_config/${name}_tia`, atomic)
  return checkAtomic(atomic, `/read_price_config/${name}_tia`)
}

function parseAtomic(amount: unknown, pointer: string): string | undefined {
  if (amount === undefined || amount === null) return undefined
  if (!/^(0|[1-9][0-9]{0,15})$/.test(String(amount)))
    throw makeInvalidFault(pointer, 'must be whole atomic units')
  return checkAtomic(BigInt(String(amount)), pointer)
}

function checkAtomic(amount: bigint, pointer: string): string {
  if (amount > limits.amountAtomicMax) throw makeInvalidFault(pointer, 'is too large')
  return String(amount)
}
