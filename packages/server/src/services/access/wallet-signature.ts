import { createHash } from 'node:crypto'
import { keccak_256 } from '@noble/hashes/sha3.js'
import { limits } from '@tollbase/contract/limits'
import { Fault } from '../../base/fault.ts'
import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { maskUrl } from '../../http/mask-url.ts'
import type { RequestInfo } from '../../http/request-info.ts'
import { recoverSigner } from '../../x402/signature.ts'
import type { WalletSignature } from './credentials.ts'

const table = sql.id('operations', 'used_signature')

export function buildUsedSignatureTables(): SqlStatement[] {
  return [
    sql`CREATE TABLE ${table} (id text NOT NULL, used_at_ms int8 NOT NULL, CONSTRAINT used_signature_pkey PRIMARY KEY (id))`,
  ]
}

/** A sign-in names the payment that it is for. */
export function buildSignaturePaymentColumn(): SqlStatement[] {
  return [sql`ALTER TABLE ${table} ADD COLUMN payment text`]
}

/** The context in which a signature is checked. */
export type SignatureUse = {
  readonly database: Database
  readonly nowMs: number
  /** Scheme, host and port of the public URL: a signature for another service is worth nothing at this one. */
  readonly origin: string
}

/** The text that a wallet signs (EIP-191) for one request. */
function formatSignedText(
  { method, url, bodyBytes, upload }: Pick<RequestInfo, 'method' | 'url' | 'bodyBytes' | 'upload'>,
  { timestamp }: WalletSignature,
  origin: string,
): string {
  // The caller of an upload is known before its body is read, which is held to the stated hash.
  const bodyHash = upload?.sha256 ?? createHash('sha256').update(bodyBytes).digest('hex')
  return `tollbase ${origin}\n${method}\n${url}\n${timestamp}\n${bodyHash}`
}

/** Returns the address that signed this request; 401 where it did not, or signed too long ago, or did so before. */
export async function verifyWallet(
  requestInfo: RequestInfo,
  signed: WalletSignature,
  use: SignatureUse,
): Promise<string> {
  const seconds = /^\d{1,12}$/.test(signed.timestamp) ? Number(signed.timestamp) : Number.NaN
  const age = Math.abs(use.nowMs / 1000 - seconds)
  if (!(age <= limits.signedRequestWindowSeconds)) {
    throw new Fault('UNAUTHORIZED', {
      message: `X-Timestamp must be unix seconds within ${limits.signedRequestWindowSeconds} seconds of now`,
    })
  }
  if (requestInfo.upload !== undefined && requestInfo.upload.sha256 === undefined)
    throw new Fault('UNAUTHORIZED', {
      message:
        'A wallet that signs an upload signs the hash of its body, which Content-Digest states (sha-256=:<base64>:)',
    })
  const text = formatSignedText(requestInfo, signed, use.origin)
  const bytes = Buffer.from(text)
  const digest = keccak_256(
    Buffer.concat([Buffer.from(`\x19Ethereum Signed Message:\n${bytes.length}`), bytes]),
  )
  const signature = /^0x[0-9a-fA-F]{130}$/.test(signed.signature)
    ? Buffer.from(signed.signature.slice(2), 'hex')
    : undefined
  const signer = signature && recoverSigner(digest, signature)
  if (signer !== signed.address) {
    // A key in the address is part of what is signed, and of no answer.
    const wanted = formatSignedText(
      { ...requestInfo, url: maskUrl(requestInfo.url) },
      signed,
      use.origin,
    )
    throw new Fault('UNAUTHORIZED', {
      message: `X-Signature was not made by X-Wallet-Address over this request; the text to sign is ${JSON.stringify(wanted)}`,
      details: { text_to_sign: wanted },
    })
  }
  if (!(await useSignature(use.database, { signer, digest, nowMs: use.nowMs })))
    throw new Fault('UNAUTHORIZED', { message: 'This signature was used before; sign again' })
  return signer
}

/**
 * Uses a signature up; false where that was done before, for another payment than this one where it is for one. It is
 * remembered for longer than any is good for.
 */
export async function useSignature(
  database: Database,
  used: {
    readonly signer: string
    readonly digest: Uint8Array
    readonly nowMs: number
    /** The identity of the payment that it is for. */
    readonly payment?: string
  },
): Promise<boolean> {
  const { signer, digest, nowMs, payment = null } = used
  await forgetOld(database, nowMs)
  const id = `${signer}:${Buffer.from(digest).toString('hex')}`
  const inserted = await database.execute(sql`
    INSERT INTO ${table} (id, used_at_ms, payment) VALUES (${id}, ${nowMs}, ${payment}::text)
    ON CONFLICT (id) DO NOTHING`)
  if (inserted === 1 || payment === null) return inserted === 1
  const [row] = await database.query<{ payment: string | null }>(
    sql`SELECT payment FROM ${table} WHERE id = ${id}`,
  )
  return row?.payment === payment
}

/** Pause between two looks for signatures to forget: each reads all, and everybody who signs would pay for those of others. */
const forgetEveryMs = 60_000
const forgotAtMs = new WeakMap<Database, number>()

/** Forgets, now and then, what is good for nothing any more. */
async function forgetOld(database: Database, nowMs: number): Promise<void> {
  const before = forgotAtMs.get(database)
  // A clock that was set back is no reason to keep them.
  if (before !== undefined && Math.abs(nowMs - before) < forgetEveryMs) return
  forgotAtMs.set(database, nowMs)
  const forgotten = nowMs - 2 * limits.signedRequestWindowSeconds * 1000
  await database.execute(sql`DELETE FROM ${table} WHERE used_at_ms < ${forgotten}`)
}
