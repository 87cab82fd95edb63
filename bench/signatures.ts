import { randomBytes } from 'node:crypto'
import { decodeHex, encodeHex } from '@tollbase/server/x402/hex'
import { makePaymentNetwork } from '@tollbase/server/x402/networks'
import {
  deriveAddress,
  digestTransfer,
  recoverSigner,
  signDigest,
} from '@tollbase/server/x402/signature'
import { getAddress, recoverTypedDataAddress } from 'viem'
import type { Benchmark } from './report.ts'
import { interleave } from './rounds.ts'

const count = 200

const transferTypes = {
  TransferWithAuthorization: [
    { name: 'from', type: 'address' },
    { name: 'to', type: 'address' },
    { name: 'value', type: 'uint256' },
    { name: 'validAfter', type: 'uint256' },
    { name: 'validBefore', type: 'uint256' },
    { name: 'nonce', type: 'bytes32' },
  ],
} as const

/**
 * Measures how long it takes to recover the signer of a payment from its fields and its signature, hashing
 * included.
 */
export const signatures: Benchmark = {
  name: 'signatures',
  run: async ({ rounds }) => {
    const network = makePaymentNetwork({ chainId: 84532, payTo: deriveAddress(randomBytes(32)) })
    const payments = Array.from({ length: count }, () => signedPayment(network))
    const ours = async () => {
      const startedAt = performance.now()
      // Our code takes about a twelfth of the time, and a round must be long enough to be measured.
      for (let again = 0; again < 10; again++)
        for (const { payment, signer } of payments) {
          const found = recoverSigner(
            digestTransfer(network, payment),
            decodeHex(payment.signature),
          )
          if (found !== signer) throw new Error('the wrong signer')
        }
      return (10 * count * 1000) / (performance.now() - startedAt)
    }
    const { asset, chainId } = network
    const domain = {
      name: asset.name,
      version: asset.version,
      chainId,
      verifyingContract: getAddress(asset.address),
    }
    const peer = async () => {
      const startedAt = performance.now()
      for (const { typed, signature, signer } of payments) {
        const found = await recoverTypedDataAddress({
          domain,
          types: transferTypes,
          primaryType: 'TransferWithAuthorization',
          message: typed,
          signature,
        })
        if (found.toLowerCase() !== signer) throw new Error('the wrong signer')
      }
      return (count * 1000) / (performance.now() - startedAt)
    }
    await ours()
    await peer()
    return [
      {
        name: 'signature check of a payment, hashing included',
        unit: 'checks/s',
        target: 8,
        comparison: await interleave({ rounds, ours, peer }),
        note: "viem's recoverTypedDataAddress; one process, one thread",
      },
    ]
  },
}

function signedPayment(network: ReturnType<typeof makePaymentNetwork>) {
  const key = randomBytes(32)
  const signer = deriveAddress(key)
  const nonce = encodeHex(randomBytes(32))
  const unsigned = {
    from: signer,
    to: network.payTo,
    value: 1000n,
    validAfter: 0n,
    validBefore: 2_000_000_000n,
    nonce,
  }
  const signature = signDigest(digestTransfer(network, unsigned), key)
  const typed = {
    ...unsigned,
    from: toHexText(unsigned.from),
    to: toHexText(unsigned.to),
    nonce: toHexText(nonce),
  }
  return { payment: { ...unsigned, signature }, typed, signature: toHexText(signature), signer }
}

/** viem's type of hexadecimal text. */
export function toHexText(text: string): `0x${string}` {
  return `0x${text.slice('0x'.length)}`
}
