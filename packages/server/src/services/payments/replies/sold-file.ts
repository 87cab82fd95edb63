import { requirePresent } from '../../../base/assert.ts'
import { isRecord } from '../../../base/is-record.ts'

/** A file that was sold: its bytes are kept where they are, and the kept reply only names them. */
export type SoldFile = {
  readonly folder: number
  readonly sha256: string
  readonly size: number
  readonly contentType: string
  readonly filename: string | undefined
}

/**
 * Stands where a kept reply has its content type, and says that it names a file. It is no media type, so no answer can
 * have it: an upstream states the type of its answer itself, and would name the files of others.
 */
export const soldFileType = 'sold file'

export function encodeSoldFile(file: SoldFile): Buffer {
  return Buffer.from(JSON.stringify(file))
}

/** Decodes what `encodeSoldFile` wrote. */
export function decodeSoldFile(body: Buffer): SoldFile {
  const value: unknown = JSON.parse(body.toString())
  const file = requirePresent(isRecord(value) ? value : undefined, 'a sold file')
  return {
    folder: Number(file.folder),
    sha256: String(file.sha256),
    size: Number(file.size),
    contentType: String(file.contentType),
    filename: typeof file.filename === 'string' ? file.filename : undefined,
  }
}
