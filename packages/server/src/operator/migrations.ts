import { leaseSizeColumns, leaseTables } from '../chain/tables.ts'
import type { Migration } from '../database/migrations.ts'
import { usedSignatureTables } from '../services/access/wallet-signature.ts'
import { secretTables } from '../services/identity/secrets.ts'
import { keyUseTables } from '../services/keys/key-use.ts'
import {
  claimTermsColumn,
  paymentTables,
  replyTypeColumn,
} from '../services/payments/claim-store.ts'
import { networkTables, restoredColumns } from '../services/payments/network-pin.ts'
import { journalTables } from '../x402/journal.ts'

/**
 * The operational state, by name: what is not an entry of a chain and what rebuild never touches.
 * Forward only; a change is a new number, never an edit.
 */
export const migrations: readonly Migration[] = [
  {
    id: 1,
    name: 'operational state',
    statements: () => [
      ...leaseTables(),
      ...journalTables(),
      ...paymentTables(),
      ...usedSignatureTables(),
      ...keyUseTables(),
      ...secretTables(),
      ...networkTables(),
    ],
  },
  { id: 2, name: 'types of kept replies', statements: () => replyTypeColumn() },
  { id: 3, name: 'terms of claims', statements: () => claimTermsColumn() },
  { id: 4, name: 'restored databases', statements: () => restoredColumns() },
  { id: 5, name: 'sizes of chains', statements: () => leaseSizeColumns() },
]
