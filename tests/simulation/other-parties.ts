import { keccak256, toHex } from 'viem'
import { type Action, type Transaction, toAuthorizationKey } from './token-forms.ts'

/** The sender of what others do in place of the service. */
const somebody = `0x${'5b'.repeat(20)}`

/** Makes the nth transaction of somebody else, who does the same as far as the contracts let him. */
export function makeOther({ to, transfer, escrow, permit }: Action, nth: number): Transaction {
  const what = transfer === undefined ? 'call' : toAuthorizationKey(transfer)
  const hash = keccak256(toHex(`${nth} ${what}`))
  const sender = escrow?.isByPayer === true ? escrow.sender : somebody
  const action = {
    to,
    ...(transfer && { transfer }),
    ...(escrow && { escrow: { ...escrow, sender } }),
    // An owner's own calls are nobody else's.
    ...(permit && {
      permit: permit.call.kind === 'settle' ? { ...permit, sender: somebody } : permit,
    }),
  }
  return { hash, nonce: undefined, action }
}

/** Makes the nth transaction of others, by which a payer takes back what it has signed. */
export function makeCancel(action: Action, nth: number): Transaction {
  const other = makeOther(action, nth)
  const { permit } = action
  if (permit?.call.kind !== 'settle') return { ...other, isCancel: true }
  const { owner: sender, nonce } = permit.call.permit
  const call = { kind: 'invalidate', word: nonce >> 8n, mask: 1n << (nonce & 255n) } as const
  return { ...other, action: { to: action.to, permit: { sender, call } } }
}

/** The things that the parties of a transfer that was taken back may do, by who signed it. */
const fates = {
  service: ['again', 'again', 'another is first', 'recipient is refused'],
  payer: ['again', 'another is first', 'payer cancels', 'payer is broke'],
  address: ['again', 'again', 'another is first'],
} as const

/** Lists what may become of a transfer that was taken back: a deposit address signs nothing but its sweeps. */
export function listFates(sender: keyof typeof fates): readonly Fate[] {
  return fates[sender]
}

type Fate = (typeof fates)[keyof typeof fates][number]
