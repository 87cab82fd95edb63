import { type SqlStatement, sql } from '../../database/sql.ts'
import { createTestDatabase, type TestDatabase } from '../../database/testing.ts'
import { PayoutSettingsTable } from '../../projections/payout-settings.ts'
import { buildAccountTables, buildLockVersionColumn } from './accounts/account-lock.ts'
import { buildHoldBudgetColumns, buildHoldHeightColumn, buildHoldTables } from './accounts/holds.ts'
import {
  buildBalanceStates,
  buildClaimStates,
  buildClaimTermsColumn,
  buildDepositedState,
  buildNameIndex,
  buildNarrowSales,
  buildNextLookColumn,
  buildPaymentIdentifierColumn,
  buildPaymentTables,
  buildReplySourcesColumn,
  buildReplyTypeColumn,
  buildSoldFileIndex,
  buildWriteFormColumn,
} from './claims/claim-tables.ts'
import { buildTransferTables, buildWithdrawalFees } from './transfers/transfer-store.ts'

/** Lists what makes the tables of claims, kept replies and holds as they are today, for a schema `operations`. */
export function listClaimTables(): readonly SqlStatement[] {
  return [
    ...buildPaymentTables(),
    ...buildReplyTypeColumn(),
    ...buildClaimTermsColumn(),
    ...buildClaimStates(),
    ...buildHoldTables(),
    ...buildBalanceStates(),
    ...buildDepositedState(),
    ...buildWriteFormColumn(),
    ...buildPaymentIdentifierColumn(),
    ...buildReplySourcesColumn(),
    ...buildNameIndex(),
    ...buildNarrowSales(),
    ...buildHoldBudgetColumns(),
    ...buildHoldHeightColumn(),
    ...buildNextLookColumn(),
    ...buildSoldFileIndex(),
  ]
}

/** Lists what makes the tables that say what may be taken from an account, beside those of the ledger. */
export function listAccountTables(): readonly SqlStatement[] {
  return [
    ...new PayoutSettingsTable().tables('system'),
    ...buildAccountTables(),
    ...buildLockVersionColumn(),
    ...buildTransferTables(),
    ...buildWithdrawalFees(),
    ...listClaimTables(),
  ]
}

/** Creates a database with the schemas `operations` and `system`, the tables of accounts, and those given. */
export async function createAccountDatabase(
  more: readonly SqlStatement[] = [],
): Promise<TestDatabase> {
  const store = await createTestDatabase()
  const schemas = [sql`CREATE SCHEMA operations`, sql`CREATE SCHEMA system`]
  for (const statement of [...schemas, ...listAccountTables(), ...more])
    await store.database.execute(statement)
  return store
}
