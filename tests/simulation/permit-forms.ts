import { decodeFunctionData, type Hex, numberToHex, parseAbi } from 'viem'
import { permit2, uptoProxy } from '../../packages/server/src/devnet/contracts.ts'
import { formatPermitNonce } from '../../packages/server/src/x402/upto/upto.ts'
import { type PermitBooks, type PermitCall, readAllowance, readNonces } from './permit-model.ts'
import type { Transfer } from './token-forms.ts'

/** Decodes a transaction to the proxy: its call, and the money that it moves where nothing stands against it. */
export function decodeUptoCall(data: Hex): {
  readonly call: PermitCall & { readonly kind: 'settle' }
  readonly transfer: Transfer
} {
  const { functionName, args } = decodeFunctionData({ abi: uptoProxy.abi, data })
  if (functionName !== 'settle') throw new Error(`nobody sends ${functionName} to the proxy`)
  const [{ permitted, nonce, deadline }, amount, payer, witness, signature] = args
  const [owner, to] = [payer.toLowerCase(), witness.to.toLowerCase()]
  const permit = {
    ...{ owner, to, nonce, deadline, signature, validAfter: witness.validAfter },
    token: permitted.token.toLowerCase(),
    permitted: permitted.amount,
    facilitator: witness.facilitator.toLowerCase(),
  }
  const name = formatPermitNonce(nonce)
  const transfer = { from: owner, to, value: amount, validBefore: deadline, nonce: name }
  return { call: { kind: 'settle', permit, amount }, transfer }
}

/** Answers which nonces of a word were used. */
export function answerPermit2(books: PermitBooks, data: Hex): string {
  const { functionName, args } = decodeFunctionData({ abi: permit2.abi, data })
  if (functionName !== 'nonceBitmap') throw new Error(`nobody asks Permit2 for ${functionName}`)
  const [owner, word] = args
  return numberToHex(readNonces(books, owner.toLowerCase(), word), { size: 32 })
}

const allowanceAbi = parseAbi([
  'function allowance(address owner, address spender) view returns (uint256)',
])

/** Answers how much of an owner's money Permit2 may move; undefined where the token is asked for something else. */
export function answerAllowance(books: PermitBooks, data: Hex): string | undefined {
  if (!data.startsWith('0xdd62ed3e')) return undefined
  const [owner] = decodeFunctionData({ abi: allowanceAbi, data }).args
  return numberToHex(readAllowance(books, owner.toLowerCase()), { size: 32 })
}
