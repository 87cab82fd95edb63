import { Fault } from '../../base/fault.ts'
import { toApplicationAccount } from '../../projections/ledger-entry.ts'
import { findPass } from '../../projections/metered-use.ts'
import type { Operation } from '../operation.ts'

export const getPass: Operation<'getPass', 'database' | 'tenants'> = async (
  { service },
  { params },
) => {
  const { tenants, database } = service
  tenants.requireRecord(params.app)
  const { chain, schema } = tenants.system
  await chain.whenApplied(chain.head().height)
  const pass = await findPass(database, schema, params.pass_id)
  if (pass === undefined || pass.account !== toApplicationAccount(params.app))
    throw new Fault('PASS_NOT_FOUND')
  return {
    pass_id: params.pass_id,
    item: { kind: pass.item_kind, name: pass.item },
    buyer: pass.buyer,
    valid_from: new Date(Number(pass.from_ms)).toISOString(),
    valid_until: new Date(Number(pass.until_ms)).toISOString(),
  }
}
