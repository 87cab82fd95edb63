import type { Logger } from 'pino'
import type { BlobStore } from '../../blobs/blob-store.ts'
import type { Config } from '../../config/config.ts'
import type { Uses } from '../call.ts'
import { ensureSecret, serviceSecrets } from '../identity/secrets.ts'
import { startClaimer } from './channels/claimer.ts'
import { startReconciler } from './claims/reconciler.ts'
import { type FacilitatedOutcome, Facilitating } from './facilitating/facilitating.ts'
import type { PaymentPorts } from './payment-ports.ts'
import { Payments } from './payments.ts'
import { startAutomaticPayouts } from './payouts/payouts.ts'
import { startRefunds } from './refunds/refund-once.ts'
import { startMoveWatch } from './reversals/watch-moves.ts'
import { startSweeper } from './settling/sweeper.ts'
import { noFees, startStorageFees } from './storage/storage-fees.ts'
import { Transfers } from './transfers/transfers.ts'

type Parts = Omit<PaymentPorts, 'quoteSecret' | 'depositSecret' | 'split'> & {
  readonly files: Pick<BlobStore, 'find' | 'list'>
  readonly log: Logger
  /** Called at the end of each settlement for another server. */
  readonly onFacilitated?: (outcome: FacilitatedOutcome) => void
}

/**
 * Starts all that takes, keeps and sends out money, with the secrets by which quotes and deposit addresses are known
 * again. `stops` ends it, the last first.
 */
export async function startPayments(
  config: Config,
  { log, onFacilitated, ...parts }: Parts,
): Promise<
  Uses<'payments' | 'transfers' | 'facilitating'> & {
    readonly stops: readonly (() => Promise<unknown>)[]
  }
> {
  const { database, world, files } = parts
  const payments = new Payments({
    ...parts,
    quoteSecret: await ensureSecret(database, world, serviceSecrets.quotes),
    depositSecret: await ensureSecret(database, world, serviceSecrets.depositAddresses),
    split: { platformBasisPoints: config.platformBasisPoints },
  })
  const transfers = new Transfers({ ...payments.ports, log })
  const stops = [
    startReconciler(payments, log),
    startSweeper(payments.ports, log),
    startClaimer({ ...payments.ports, log }),
    transfers.start(),
    startMoveWatch({ ...payments.ports, log, turns: payments.turns }),
    startRefunds(payments.ports, log),
    startStorageFees({ ...payments.ports, settings: config.storageFees ?? noFees, files }, log),
    startAutomaticPayouts({ ...payments.ports, transfers }, (app, error) =>
      log.warn(
        { app, error: String(error) },
        'a payout could not be begun, or a locked balance not be put in force',
      ),
    ),
  ]
  const facilitating =
    config.facilitator &&
    new Facilitating({ ...payments.ports, onOutcome: onFacilitated }, config.facilitator)
  return { payments, transfers, facilitating, stops }
}
