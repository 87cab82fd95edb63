import { createHmac } from 'node:crypto'
import { Fault } from '../../base/fault.ts'
import { platformAccount } from '../../projections/ledger-entry.ts'
import type { Call } from '../call.ts'
import { readIdempotencyKey } from './idempotency-key.ts'
import type { OutgoingTransfer } from './transfers/transfer-store.ts'
import type { TransferOrder } from './transfers/transfers.ts'

/** A withdrawal as a request asks for it. */
export type WithdrawalBody = {
  readonly amount: string | number
  readonly destination?: string
  readonly network?: string
  readonly idempotency_key?: string
}

type Chosen = Pick<TransferOrder, 'recipient'>

/** The rules of the balance that it is taken from. */
export type WithdrawalSource = {
  readonly account: string
  /** Chooses where the money goes, in lower case; throws where it may not go there. */
  readonly choose: (asked: string | undefined) => Promise<Chosen>
}

/** Takes the amount from the account and begins to send it; with the same idempotency key it is the same one. */
export async function requestWithdrawal(
  { service, requestInfo }: Call<'transfers' | 'world' | 'cursorSecret'>,
  { amount: asked, destination, network: named, idempotency_key }: WithdrawalBody,
  { account, choose }: WithdrawalSource,
): Promise<OutgoingTransfer> {
  const { transfers, world, cursorSecret } = service
  const key = readIdempotencyKey(requestInfo, idempotency_key)
  const id = `wd_${key === undefined ? world.randomBytes(16).toString('hex') : deriveId(cursorSecret, [account, key])}`
  const amount = BigInt(asked)
  const known = await transfers.find(id)
  if (known !== undefined) {
    // It goes on, wherever money goes by now.
    const { kind, recipient, network } = known
    const to = destination?.toLowerCase() ?? recipient
    return transfers.request({
      id,
      kind,
      account,
      amount,
      recipient: to,
      network: named ?? network,
    })
  }
  const network = named ?? transfers.listNetworks()[0]?.network.id
  if (network === undefined) throw new Fault('TRANSFERS_NOT_CONFIGURED')
  const chosen = await choose(destination?.toLowerCase())
  const method = transfers.listNetworks().find((one) => one.network.id === network)
  const isOurs = account === platformAccount
  const fee = isOurs ? 0n : (method?.network.withdrawalFee ?? 0n)
  const asking = { id, kind: 'withdrawal', account, amount, network, fee } as const
  return transfers.request({ ...asking, isBounded: !isOurs, ...chosen })
}

/** The same key names the same withdrawal; who has the id may look at it, so it cannot be guessed from the key. */
function deriveId(secret: Buffer, [account, key]: readonly [string, string]): string {
  const text = JSON.stringify(['withdrawal', account, key])
  return createHmac('sha256', secret).update(text).digest('hex').slice(0, 32)
}
