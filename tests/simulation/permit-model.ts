import { type Hex, hashTypedData, hexToBytes } from 'viem'
import { decodeHex } from '../../packages/server/src/x402/hex.ts'
import { recoverSigner } from '../../packages/server/src/x402/signature.ts'
import { permit2Address, uptoProxyAddress } from '../../packages/server/src/x402/upto/upto-terms.ts'
import { Revert } from './escrow-model.ts'

/** A payer's signature that a facilitator may take up to this amount of a token once, as the proxy takes it. */
export type Permit = {
  readonly owner: string
  readonly token: string
  /** Atomic units. */
  readonly permitted: bigint
  readonly nonce: bigint
  /** Seconds since 1970. */
  readonly deadline: bigint
  readonly to: string
  readonly facilitator: string
  readonly validAfter: bigint
  readonly signature: string
}

/** A call that changes what Permit2 may move: of the proxy, of Permit2 itself, or of the token. */
export type PermitCall =
  | { readonly kind: 'settle'; readonly permit: Permit; readonly amount: bigint }
  /** The sender takes back what it has signed: the nonces of a word that the mask names. */
  | { readonly kind: 'invalidate'; readonly word: bigint; readonly mask: bigint }
  /** The sender lets Permit2 move so much of its money. */
  | { readonly kind: 'approve'; readonly amount: bigint }

/** The used nonces, by owner and word, and what each owner lets Permit2 move. */
export type PermitBooks = {
  readonly nonces: ReadonlyMap<string, bigint>
  readonly allowances: ReadonlyMap<string, bigint>
}

export type PermitContext = {
  readonly chainId: number
  /** Lower case. */
  readonly sender: string
  /** Seconds since 1970. */
  readonly seconds: bigint
}

export const emptyPermitBooks: PermitBooks = { nonces: new Map(), allowances: new Map() }
export const unlimited = 2n ** 256n - 1n
const nobody = `0x${'00'.repeat(20)}`

/** Reads which nonces of a word were used, a bit for each. */
export function readNonces({ nonces }: PermitBooks, owner: string, word: bigint): bigint {
  return nonces.get(`${owner}/${word}`) ?? 0n
}

export function readAllowance({ allowances }: PermitBooks, owner: string): bigint {
  return allowances.get(owner) ?? 0n
}

/**
 * Computes the books after a call; throws `Revert` with the name of the contract's error where it reverts. The owner's
 * balance is not here: whoever calls this sees to it. permit-model.test.ts compares it with the contracts' code.
 */
export function applyPermitCall(
  books: PermitBooks,
  call: PermitCall,
  context: PermitContext,
): PermitBooks {
  const { sender } = context
  switch (call.kind) {
    case 'approve':
      return { ...books, allowances: new Map(books.allowances).set(sender, call.amount) }
    case 'invalidate':
      return useNonces(books, sender, call)
    case 'settle':
      return settle(books, call, context)
  }
}

function settle(
  books: PermitBooks,
  { permit, amount }: { readonly permit: Permit; readonly amount: bigint },
  { chainId, sender, seconds }: PermitContext,
): PermitBooks {
  const { owner, permitted, nonce, deadline, to, facilitator, validAfter } = permit
  if (sender !== facilitator) throw new Revert('UnauthorizedFacilitator')
  if (owner === nobody) throw new Revert('InvalidOwner')
  if (to === nobody) throw new Revert('InvalidDestination')
  if (seconds < validAfter) throw new Revert('PaymentTooEarly')
  if (amount === 0n) throw new Revert('InvalidAmount')
  if (amount > permitted) throw new Revert('AmountExceedsPermitted')
  if (seconds > deadline) throw new Revert('SignatureExpired')
  const place = { word: nonce >> 8n, mask: 1n << (nonce & 255n) }
  if ((readNonces(books, owner, place.word) & place.mask) !== 0n) throw new Revert('InvalidNonce')
  if (!isSigned(chainId, permit)) throw new Revert('InvalidSigner')
  const allowed = readAllowance(books, owner)
  if (allowed < amount) throw new Revert('Error')
  const rest = allowed === unlimited ? allowed : allowed - amount
  const after = useNonces(books, owner, place)
  return { ...after, allowances: new Map(after.allowances).set(owner, rest) }
}

function useNonces(
  books: PermitBooks,
  owner: string,
  { word, mask }: { readonly word: bigint; readonly mask: bigint },
): PermitBooks {
  const used = readNonces(books, owner, word) | mask
  return { ...books, nonces: new Map(books.nonces).set(`${owner}/${word}`, used) }
}

function isSigned(chainId: number, permit: Permit): boolean {
  return recoverSigner(digestPermit(chainId, permit), decodeHex(permit.signature)) === permit.owner
}

/** Digests a permit as its payer signs it. */
export function digestPermit(chainId: number, permit: Omit<Permit, 'signature'>): Uint8Array {
  const { token, permitted, nonce, deadline, to, facilitator, validAfter } = permit
  const digest = hashTypedData({
    domain: { name: 'Permit2', chainId, verifyingContract: permit2Address },
    types: permitTypes,
    primaryType: 'PermitWitnessTransferFrom',
    message: {
      permitted: { token: token as Hex, amount: permitted },
      ...{ spender: uptoProxyAddress as Hex, nonce, deadline },
      witness: { to: to as Hex, facilitator: facilitator as Hex, validAfter },
    },
  })
  return hexToBytes(digest)
}

const permitTypes = {
  PermitWitnessTransferFrom: [
    { name: 'permitted', type: 'TokenPermissions' },
    { name: 'spender', type: 'address' },
    { name: 'nonce', type: 'uint256' },
    { name: 'deadline', type: 'uint256' },
    { name: 'witness', type: 'Witness' },
  ],
  TokenPermissions: [
    { name: 'token', type: 'address' },
    { name: 'amount', type: 'uint256' },
  ],
  Witness: [
    { name: 'to', type: 'address' },
    { name: 'facilitator', type: 'address' },
    { name: 'validAfter', type: 'uint256' },
  ],
} as const
