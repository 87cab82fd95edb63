import { requirePresent } from '../../base/assert.ts'
import { Fault } from '../../base/fault.ts'
import { mergeObjectTexts } from '../../base/json-text.ts'
import type { StoredFile } from '../../blobs/blob-shelf.ts'
import { blobKey, findBlobHash, makeBlobId, parseBlobRow } from '../../model/blob.ts'
import type { ResealingDefinition } from '../../model/definitions.ts'
import type { Collection } from '../../model/readable.ts'
import { listLiveKeys } from '../../projections/read-records.ts'
import type { ResealedVersion } from '../../projections/reseal.ts'
import { listOtherHolders, readEarlierCopies } from '../../projections/resealed-blobs.ts'
import { hasFileKey } from '../../sealing/envelope.ts'
import { computeSealedSize } from '../../sealing/segments.ts'
import type { Tenant } from '../applications/tenants.ts'
import { openSealedFile, takeBlob } from '../blobs/sealed-blobs.ts'
import type { ResealingPorts } from './resealing-ports.ts'

// Where the encryption of a collection of blobs changes, the file of each blob gets its other form before its row does,
// outside of all locks, and the row gets the id that belongs to that file. A blob that is deleted has no file: its
// versions get an id that names none. The two tables tell what became of a blob, by the leaves that they share.

/** Bytes of files that get their other form before the rows of their page are written. */
const fileBytesAtOnce = 64 * 1024 * 1024
const idBytes = 32

/** The form that a blob gets. */
export type BlobForm = {
  readonly id: string
  /** The key of its bytes, where they are sealed. */
  readonly fileKey: Buffer | undefined
  readonly hasFile: boolean
}

/** Blobs whose files are there in the other form, by the ids that the blobs still have. */
export type PreparedFiles = Map<string, BlobForm>

/** A version with the id of its blob as it will be. */
export type RenamedVersion = ResealedVersion & {
  /** The id that its blob had. */
  readonly formerId: string
  readonly fileKey: Buffer | undefined
}

type Page = {
  readonly resealing: ResealingDefinition
  readonly collection: Collection
  /** Versions as the first table has them. */
  readonly versions: readonly ResealedVersion[]
}

/**
 * Makes the other forms of the files that a page of versions needs, as many as fit into one turn, and says whether all
 * are there. `note` hears of the bytes of each.
 */
export async function prepareFiles(
  ports: ResealingPorts,
  tenant: Tenant,
  page: Page & { readonly prepared: PreparedFiles; readonly note: (bytes: number) => void },
): Promise<boolean> {
  const { prepared, note } = page
  const find = await makeFinder(ports, tenant, page)
  let bytes = 0
  for (const version of page.versions) {
    if (find(version) !== undefined) continue
    if (bytes >= fileBytesAtOnce) return false
    const made = await makeFile(ports, tenant, { ...page, version })
    bytes += made.bytes
    note(made.bytes)
    prepared.set(version.key, made.form)
    ports.world.failpoint?.('resealing.filed')
    find(version)
  }
  return true
}

/** Gives the versions of a page their other ids, up to the first one whose file is not there in its other form. */
export async function renameVersions(
  ports: ResealingPorts,
  tenant: Tenant,
  page: Page & { readonly prepared: PreparedFiles },
): Promise<RenamedVersion[]> {
  const find = await makeFinder(ports, tenant, page)
  const renamed: RenamedVersion[] = []
  for (const version of page.versions) {
    const form = find(version)
    if (form === undefined) break
    const fileKey = version.deleted ? undefined : form.fileKey
    renamed.push({ ...version, key: form.id, formerId: version.key, fileKey })
  }
  return renamed
}

/** Writes the id of a blob into its row. */
export function setBlobId(body: string, id: string): string {
  return mergeObjectTexts(body, JSON.stringify({ [blobKey]: id }))
}

/**
 * Makes a function that tells what each version of the page becomes, called with them in their order; undefined where a
 * file is needed first. Versions of one blob become one blob, up to the one that deletes it: bytes that were uploaded
 * again may have another id.
 */
async function makeFinder(
  { database, world }: ResealingPorts,
  tenant: Tenant,
  { resealing, collection, versions, prepared }: Page & { readonly prepared: PreparedFiles },
): Promise<(version: ResealedVersion) => BlobForm | undefined> {
  const { schema } = tenant
  const { table } = collection
  const isSealing = resealing.action === 'add'
  const tables = { from: table, to: `c_${resealing.number}` }
  const keys = [...new Set(versions.map(({ key }) => key))]
  const live = new Set(await listLiveKeys(database, { schema, table, keys }))
  const leaves = versions.map(({ leaf }) => leaf)
  const last = new Map<string, BlobForm & { readonly deleted: boolean }>()
  for (const { key, id, deleted, body } of await readEarlierCopies(database, schema, {
    ...tables,
    leaves,
  })) {
    const hasFile = isSealing ? hasFileKey(body) : id !== key
    const fileKey =
      isSealing && hasFile
        ? (await tenant.sealer.openFileSealing(collection, { key: id, body })).key
        : undefined
    last.set(key, { id, fileKey, hasFile, deleted })
  }
  const deletedKeys = versions.filter(({ deleted }) => deleted).map(({ key }) => key)
  const held = isSealing
    ? new Set<string>()
    : new Set(await listOtherHolders(database, schema, { ...tables, keys: deletedKeys }))
  const nameUnfiled = (key: string): BlobForm => ({
    // The hash of sealed bytes tells nothing, so it may stay; that of plain bytes may not.
    id: isSealing ? `blob_${world.randomBytes(idBytes).toString('hex')}` : key,
    fileKey: undefined,
    hasFile: false,
  })
  const isShared = (key: string, id: string) =>
    held.has(key) ||
    [...last].some(([other, now]) => now.id === id && other !== key && live.has(other))
  const choose = ({ key, deleted }: ResealedVersion): BlobForm | undefined => {
    const before = last.get(key)
    // Two sealed blobs of the same bytes become one, which is there as long as one of them is.
    if (deleted) return before === undefined || isShared(key, before.id) ? nameUnfiled(key) : before
    const isOfBefore = before !== undefined && !before.deleted
    if (isOfBefore && (before.hasFile || !live.has(key))) return before
    return live.has(key) ? prepared.get(key) : nameUnfiled(key)
  }
  return (version) => {
    const form = choose(version)
    if (form !== undefined) last.set(version.key, { ...form, deleted: version.deleted })
    return form
  }
}

type Made = { readonly form: BlobForm; readonly bytes: number }

/** Makes the file of a version's blob in its other form: the bytes go through, a piece at a time. */
async function makeFile(
  { blobs }: ResealingPorts,
  tenant: Tenant,
  page: Page & { readonly version: ResealedVersion },
): Promise<Made> {
  const { version, resealing, collection } = page
  const folder = tenant.application.number
  const isSealing = resealing.action === 'add'
  const sealing = isSealing ? tenant.sealer.makeFileSealing() : undefined
  try {
    const source = isSealing
      ? await blobs.store.find({ folder, sha256: requireHash(version.key) })
      : await findSealed(blobs.store, tenant, { collection, version })
    if (source === undefined) throw new Fault('BLOB_GONE')
    const { file } = await takeBlob(blobs.store, source.read(), sealing)
    try {
      // It replaces a file that the quota counts already.
      await file.publish(folder, () => undefined)
    } finally {
      await file.discard()
    }
    const form = { id: makeBlobId(file.sha256), fileKey: sealing?.key, hasFile: true }
    return { form, bytes: file.size }
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'BLOB_GONE') throw error
    // Whoever has the task's id may read this, so the blob is named by its place.
    throw new Fault('BLOB_GONE', {
      message: `the bytes of the blob whose row is in block ${version.height} at ${version.sequence} are missing or damaged: upload them again, or delete the blob`,
      cause: error,
    })
  }
}

async function findSealed(
  store: ResealingPorts['blobs']['store'],
  { sealer, application }: Tenant,
  { collection, version }: Pick<Page, 'collection'> & { readonly version: ResealedVersion },
): Promise<StoredFile | undefined> {
  const sha256 = requireHash(version.key)
  const sealing = await sealer.openFileSealing(collection, version)
  const [row] = await sealer.open(collection, [version])
  const { size } = parseBlobRow(requirePresent(row, 'the opened row').body)
  const file = await store.find({ folder: application.number, sha256 }, computeSealedSize(size))
  return file && openSealedFile(file, sealing, { size, sha256 })
}

function requireHash(id: string): string {
  return requirePresent(findBlobHash(id), 'the hash in the id of a blob')
}
