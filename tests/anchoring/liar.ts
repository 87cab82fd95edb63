import { generateKeyPairSync } from 'node:crypto'
import { createServer } from 'node:http'
import { encodeBase64 } from '@tollbase/verify/bytes'
import { formatCheckpoint } from '@tollbase/verify/checkpoint'
import { computeReferenceConsistency, computeReferenceRoot } from '@tollbase/verify/reference-tree'
import { hashLeaf } from '@tollbase/verify/tree'
import { makeSigner } from '../../packages/server/src/chain/signing.ts'

/** A service that answers as a test says: it has the key of its log, and any history that suits it. */
export type Liar = {
  readonly url: string
  readonly vkey: string
  /** Shows a log with these leaves from now on. */
  readonly show: (leaves: readonly string[]) => void
  /** Answers everything with this from now on; undefined ends it. */
  readonly answer: (
    body: ((send: (text: string, status?: number) => void) => void) | undefined,
    /** The end of the paths that are answered so; all if not given. */
    to?: string,
  ) => void
  /** The note of these leaves. */
  readonly sign: (leaves: readonly string[], origin?: string) => string
  readonly close: () => Promise<void>
}

const origin = 'liar/shop'

export async function startLiar(): Promise<Liar> {
  const signer = makeSigner(generateKeyPairSync('ed25519').privateKey, origin)
  let leaves: readonly Uint8Array[] = []
  let special: Parameters<Liar['answer']>[0]
  let specialEnd = ''
  const sign = (texts: readonly string[], of = origin) => {
    const hashes = texts.map((text) => hashLeaf(Buffer.from(text)))
    return signer.signNote(
      formatCheckpoint({ origin: of, size: hashes.length, root: computeReferenceRoot(hashes) }),
    )
  }
  const server = createServer((request, reply) => {
    const send = (text: string, status = 200) => {
      reply.writeHead(status, { 'content-type': 'application/json' })
      reply.end(text)
    }
    const { pathname, searchParams } = new URL(request.url ?? '/', 'http://liar')
    if (special !== undefined && pathname.endsWith(specialEnd)) return special(send)
    if (pathname.endsWith('/checkpoint')) {
      const checkpoint = sign(leaves.map((leaf) => Buffer.from(leaf).toString()))
      return send(JSON.stringify({ checkpoint }))
    }
    const [from, to] = [Number(searchParams.get('from')), Number(searchParams.get('to'))]
    if (to > leaves.length) return send('{"code":"VALIDATION_FAILED"}', 400)
    const hashes = leaves.slice(0, to).map(hashLeaf)
    const proof = from === 0 ? [] : computeReferenceConsistency(from, hashes).map(encodeBase64)
    send(JSON.stringify({ from, to, hashes: proof }))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  return {
    url: `http://127.0.0.1:${typeof address === 'object' ? address?.port : 0}`,
    vkey: signer.vkey,
    show: (texts) => {
      leaves = texts.map((text) => Buffer.from(text))
    },
    answer: (body, to = '') => {
      special = body
      specialEnd = to
    },
    sign,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}
