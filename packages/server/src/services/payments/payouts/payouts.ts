import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../../base/fault.ts'
import { formatUnits } from '../../../base/format-usd.ts'
import {
  findDestination,
  findPendingDestination,
  type PayoutSettings,
} from '../../../model/payout-settings.ts'
import { toApplicationAccount } from '../../../projections/ledger-entry.ts'
import type { Uses } from '../../call.ts'
import { readAvailable } from '../accounts/account-lock.ts'
import type { PaymentMethod } from '../payment-ports.ts'
import type { OutgoingTransfer } from '../transfers/transfer-store.ts'
import { putLocksInForce } from './locks.ts'
import { findLeastPayout } from './payout-minimum.ts'

const intervalMs = 60_000
/** Payouts of one round that are begun together, so that they can go in one transaction. */
const togetherMax = 10

export type PayoutParts = Uses<'database' | 'tenants' | 'transfers' | 'world'>

export type PayoutState = {
  readonly settings: PayoutSettings
  /** Undefined where payouts have nowhere to go yet. */
  readonly destination: string | undefined
  /** Where they will go, from milliseconds since 1970 on. */
  readonly pending: { readonly address: string; readonly fromMs: number } | undefined
  /** The part of the balance that can be paid out, in atomic units. */
  readonly available: bigint
}

/** Reads what can be paid out of an application's earnings, and where to. */
export async function readPayoutState(
  { database, tenants, world }: Omit<PayoutParts, 'transfers'>,
  app: string,
): Promise<PayoutState> {
  const record = tenants.requireRecord(app)
  const { chain, payoutSettings } = tenants.system
  await chain.whenApplied(chain.head().height)
  const settings = payoutSettings.get(app)
  const available = await readAvailable(database, toApplicationAccount(app))
  return {
    settings,
    destination: findDestination(settings, record, world.now()),
    pending: findPendingDestination(settings, record, world.now()),
    available: available > 0n ? available : 0n,
  }
}

export function makeNowhereFault(): Fault {
  return new Fault('PAYOUT_NOT_POSSIBLE', {
    message: `The payout has no destination: the owner must choose payout_destination, or ${limits.payoutDestinationSeconds / 3600} hours must pass after a key chose it`,
  })
}

export type PayoutOrder = {
  /** Names the payout for ever: asked again, it is the same one. */
  readonly id: string
  /** All that is available where it is not given. */
  readonly amount?: bigint | undefined
  /** The first that money can leave on where it is not given. */
  readonly network?: string | undefined
}

/** Begins a payout; 409 where there is nowhere to pay to, too little to pay, or no way. */
export async function requestPayout(
  service: PayoutParts,
  app: string,
  order: PayoutOrder,
): Promise<OutgoingTransfer> {
  const { transfers } = service
  const known = await transfers.find(order.id)
  if (known !== undefined) return requestAgain(service, known, order)
  try {
    return await beginPayout(service, app, order)
  } catch (error) {
    // The same order may have taken, at this moment, all that there was.
    const meanwhile = await transfers.find(order.id)
    if (meanwhile === undefined) throw error
    return requestAgain(service, meanwhile, order)
  }
}

async function beginPayout(
  service: PayoutParts,
  app: string,
  { id, amount, network }: PayoutOrder,
): Promise<OutgoingTransfer> {
  const { settings, destination, available } = await readPayoutState(service, app)
  if (destination === undefined) throw makeNowhereFault()
  const method = findMethod(service, network)
  if (method === undefined) throw new Fault('TRANSFERS_NOT_CONFIGURED')
  const least = findLeastPayout(settings, method.network)
  const asked = amount ?? available
  if (asked < least)
    throw new Fault('PAYOUT_NOT_POSSIBLE', {
      message: `A payout has at least ${formatUnits(least)}, and this one would have ${asked}`,
      details: { available: String(available), min_payout: String(least) },
    })
  return service.transfers.request({
    id,
    kind: 'payout',
    account: toApplicationAccount(app),
    network: method.network.id,
    recipient: destination,
    amount: asked,
    isBounded: true,
  })
}

/** The payout that was asked for before goes on, wherever payouts go by now. */
function requestAgain(
  { transfers }: PayoutParts,
  known: OutgoingTransfer,
  { amount = known.amount, network = known.network }: Omit<PayoutOrder, 'id'>,
): Promise<OutgoingTransfer> {
  const { id, kind, account, recipient } = known
  return transfers.request({ id, kind, account, recipient, amount, network })
}

function findMethod({ transfers }: PayoutParts, network: string | undefined) {
  return transfers.listNetworks().find((one) => network === undefined || one.network.id === network)
}

/**
 * Pays out, of each application that wants it, all that is available where this is as much as its threshold. Done
 * twice at once it pays once: the second finds nothing left. `onFailure` is told of each one that could not be begun.
 */
export async function payOutDue(
  service: PayoutParts,
  onFailure: (app: string, error: unknown) => void,
): Promise<void> {
  const method = findMethod(service, undefined)
  if (method === undefined) return
  const apps = service.tenants.system.payoutSettings.listAutomatic().map(({ app_id }) => app_id)
  for (let at = 0; at < apps.length; at += togetherMax)
    await Promise.all(
      apps.slice(at, at + togetherMax).map((app) =>
        payOutIfDue(service, app, method).catch((error: unknown) => {
          // As many as a day has were made: it waits for the next day.
          if (!(error instanceof Fault && error.code === 'WITHDRAWAL_LIMIT')) onFailure(app, error)
        }),
      ),
    )
}

async function payOutIfDue(
  service: PayoutParts,
  app: string,
  method: PaymentMethod,
): Promise<void> {
  const { settings, destination, available } = await readPayoutState(service, app)
  const least = findLeastPayout(settings, method.network)
  const threshold = BigInt(settings.payout_threshold ?? '0')
  if (destination === undefined || available < least || available < threshold) return
  await requestPayout(service, app, { id: makePayoutId(service), amount: available })
}

export function makePayoutId({ world }: Pick<PayoutParts, 'world'>): string {
  return `payout_${world.randomBytes(16).toString('hex')}`
}

/** Locks at intervals what is due, and pays out the rest. The returned function ends it. */
export function startAutomaticPayouts(
  service: PayoutParts,
  onFailure: (app: string, error: unknown) => void,
): () => Promise<void> {
  let round: Promise<void> | undefined
  const stop = service.world.every(intervalMs, () => {
    round ??= runRound(service, onFailure).finally(() => {
      round = undefined
    })
  })
  return async () => {
    stop()
    await round
  }
}

async function runRound(
  service: PayoutParts,
  onFailure: (app: string, error: unknown) => void,
): Promise<void> {
  await putLocksInForce(service, onFailure)
  await payOutDue(service, onFailure)
}
