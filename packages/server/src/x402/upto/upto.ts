import { computeSelector, decodeHex, encodeHexWord, encodeNumberWord, hashKeccak } from '../hex.ts'
import type { PaymentNetwork } from '../networks.ts'
import type { SignedPayment } from '../protocol.ts'
import { digestTyped, hashTypeName, recoverSigner } from '../signature.ts'
import { hasTopics, type Log, topics } from '../token.ts'
import { permit2Address, type UptoTerms, uptoProxyAddress } from './upto-terms.ts'

/** A payment of the scheme `upto`; `payload.value` is what it moves. */
export type UptoPayment = SignedPayment & { readonly upto: UptoTerms }

/** The nonces of Permit2 are others than those of the token, though a payer may write equal ones. */
const noncePrefix = 'permit2:'

export function formatPermitNonce(nonce: bigint): string {
  return `${noncePrefix}0x${encodeNumberWord(nonce)}`
}

function getPermitNonce({ payload }: UptoPayment): bigint {
  return BigInt(payload.nonce.slice(noncePrefix.length))
}

const domainType = hashTypeName(
  'EIP712Domain(string name,uint256 chainId,address verifyingContract)',
)
const permissionsType = hashTypeName('TokenPermissions(address token,uint256 amount)')
const witnessType = hashTypeName('Witness(address to,address facilitator,uint256 validAfter)')
const permitType = hashTypeName(
  'PermitWitnessTransferFrom(TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Witness witness)TokenPermissions(address token,uint256 amount)Witness(address to,address facilitator,uint256 validAfter)',
)

const separators = new Map<number, string>()

/** Returns true where the payer signed this permit of the network's asset. */
export function isPermitSigned(network: PaymentNetwork, payment: UptoPayment): boolean {
  const { payload, upto } = payment
  const permissions = [encodeHexWord(network.asset.address), encodeNumberWord(upto.permitted)]
  const words = [
    hashWords([permissionsType, ...permissions]),
    encodeHexWord(uptoProxyAddress),
    encodeNumberWord(getPermitNonce(payment)),
    encodeNumberWord(payload.validBefore),
    hashWords([witnessType, ...listWitnessWords(payment)]),
  ]
  const digest = digestTyped(getSeparator(network.chainId), permitType, words)
  return recoverSigner(digest, decodeHex(payload.signature)) === payload.from
}

function listWitnessWords({ payload, upto }: UptoPayment): readonly string[] {
  return [
    encodeHexWord(payload.to),
    encodeHexWord(upto.facilitator),
    encodeNumberWord(payload.validAfter),
  ]
}

function getSeparator(chainId: number): string {
  const known = separators.get(chainId)
  if (known !== undefined) return known
  const domain = [encodeNumberWord(chainId), encodeHexWord(permit2Address)]
  const separator = hashWords([domainType, hashTypeName('Permit2'), ...domain])
  separators.set(chainId, separator)
  return separator
}

function hashWords(words: readonly string[]): string {
  return Buffer.from(hashKeccak(Buffer.from(words.join(''), 'hex'))).toString('hex')
}

/** The gas limit of one payment: some 105,000 are used where the payee has a balance already. */
export const uptoGas = 220_000n

const selectors = {
  settle: computeSelector(
    'settle(((address,uint256),uint256,uint256),uint256,address,(address,address,uint256),bytes)',
  ),
  allowance: computeSelector('allowance(address,address)'),
  nonces: computeSelector('nonceBitmap(address,uint256)'),
}

/** Encodes the call that takes `payload.value`. */
export function encodeUptoCall(
  { asset }: { readonly asset: Pick<PaymentNetwork['asset'], 'address'> },
  payment: UptoPayment,
): string {
  const { payload, upto } = payment
  const words = [
    encodeHexWord(asset.address),
    encodeNumberWord(upto.permitted),
    encodeNumberWord(getPermitNonce(payment)),
    encodeNumberWord(payload.validBefore),
    encodeNumberWord(payload.value),
    encodeHexWord(payload.from),
    ...listWitnessWords(payment),
  ]
  const signature = decodeHex(payload.signature)
  // The signature's place, its length, and its bytes as whole words.
  const place = encodeNumberWord((words.length + 1) * 32)
  const bytes = signature.toString('hex').padEnd(192, '0')
  return [selectors.settle, ...words, place, encodeNumberWord(signature.length), bytes].join('')
}

/** Encodes the question which nonces near the payment's were used, and gives the bit of its own in the answer. */
export function encodeNonceCall(payment: UptoPayment): { data: string; bit: bigint } {
  const nonce = getPermitNonce(payment)
  const words = [encodeHexWord(payment.payload.from), encodeNumberWord(nonce >> 8n)]
  return { data: [selectors.nonces, ...words].join(''), bit: 1n << (nonce & 255n) }
}

/** Encodes the question how much of an owner's money Permit2 may move. */
export function encodeAllowanceCall(owner: string): string {
  return `${selectors.allowance}${encodeHexWord(owner)}${encodeHexWord(permit2Address)}`
}

/** Returns true if these logs of one transaction of ours show that the payment's value moved to its payee. */
export function hasMoved(
  logs: readonly Log[],
  network: PaymentNetwork,
  { payload }: UptoPayment,
): boolean {
  const ends = [payload.from, payload.to].map((address) => `0x${encodeHexWord(address)}`)
  return logs.some(
    (log) =>
      log.address === network.asset.address &&
      hasTopics(log, [topics.transfer, ...ends]) &&
      log.data === `0x${encodeNumberWord(payload.value)}`,
  )
}

export function isUpto(payment: object): payment is UptoPayment {
  return 'upto' in payment && payment.upto !== undefined
}
