import { bytesToHex, concatBytes, hexToBytes } from '@noble/hashes/utils.js'

/** A document or text of the wrong form; the message names the place. */
export class FormatError extends Error {
  override readonly name = 'FormatError'
}

const encoder = new TextEncoder()
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
/** Arguments that one call of String.fromCharCode takes everywhere. */
const charsPerCall = 8192

export function encodeUtf8(text: string): Uint8Array {
  return encoder.encode(text)
}

/** Decodes UTF-8 and refuses other bytes, so that text and bytes correspond exactly. */
export function decodeUtf8(bytes: Uint8Array): string {
  try {
    return decoder.decode(bytes)
  } catch {
    throw new FormatError('the bytes are not UTF-8')
  }
}

export function encodeHex(bytes: Uint8Array): string {
  return bytesToHex(bytes)
}

/** Decodes lower-case hexadecimal of exactly `count` bytes. */
export function decodeHex(text: string, count: number): Uint8Array {
  if (text.length !== count * 2 || !/^[0-9a-f]*$/.test(text)) {
    throw new FormatError(`expected ${count} bytes as lower-case hexadecimal`)
  }
  return hexToBytes(text)
}

export function encodeBase64(bytes: Uint8Array): string {
  let text = ''
  for (let start = 0; start < bytes.length; start += charsPerCall) {
    text += String.fromCharCode(...bytes.subarray(start, start + charsPerCall))
  }
  return btoa(text)
}

/** Decodes standard base64 with padding and nothing else (RFC 4648 section 4): one text per byte sequence. */
export function decodeBase64(text: string): Uint8Array {
  let decoded: string
  try {
    decoded = atob(text)
  } catch {
    throw new FormatError('the text is not base64')
  }
  if (btoa(decoded) !== text) throw new FormatError('the text is not base64 in its standard form')
  const bytes = new Uint8Array(decoded.length)
  for (let at = 0; at < bytes.length; at++) bytes[at] = decoded.charCodeAt(at)
  return bytes
}

export function areBytesEqual(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, index) => byte === b[index])
}

export function concat(...parts: readonly Uint8Array[]): Uint8Array {
  return concatBytes(...parts)
}

/** The same for as many parts as there are: a call has only so many arguments. */
export function concatAll(parts: readonly Uint8Array[]): Uint8Array {
  const whole = new Uint8Array(parts.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const part of parts) {
    whole.set(part, at)
    at += part.length
  }
  return whole
}
