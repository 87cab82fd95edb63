import { encodeHex, hashKeccak } from '../x402/hex.ts'
import { anchors } from './contract.ts'

/**
 * The factory that chains have at one address (https://github.com/Arachnid/deterministic-deployment-proxy): it is
 * called with a salt and the code to run, and makes the contract by CREATE2, at the same address on every chain.
 */
export const factory = '0x4e59b44847b379578588920ca78fbf26c0b4956c'

const salt = Buffer.alloc(32)

/** The code that the contract has at its address. */
export const anchorCode = anchors.code

/** The data of the call of the factory that makes the contract. */
export const deployData: string = encodeHex(Buffer.concat([salt, toBytes(anchors.creationCode)]))

/** Computes the address of contracts/Anchors.sol where the factory made it (EIP-1014). */
export function computeAnchorAddress(): string {
  const parts = [Buffer.of(0xff), toBytes(factory), salt, hashKeccak(toBytes(anchors.creationCode))]
  return encodeHex(hashKeccak(Buffer.concat(parts)).subarray(12))
}

function toBytes(hex: string): Buffer {
  return Buffer.from(hex.slice(2), 'hex')
}
