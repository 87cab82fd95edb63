import { readFileSync } from 'node:fs'
import { ConfigError } from '../../config/config-file.ts'
import { decodeHex } from '../../x402/hex.ts'

/** Reads the private key of an EVM account from a file that the configuration names; `where` is the name of the setting. */
export function readKey(path: string | undefined, where: string): Uint8Array {
  if (path === undefined) throw new ConfigError(`${where} is missing`)
  let text: string
  try {
    text = readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new ConfigError(
      `${where} cannot be read: ${error instanceof Error ? error.message : String(error)}`,
    )
  }
  if (!/^0x[0-9a-fA-F]{64}$/.test(text))
    throw new ConfigError(`${where} must hold one key as 0x and 64 hex digits`)
  return decodeHex(text.toLowerCase())
}
