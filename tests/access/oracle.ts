import type { Access } from '@tollbase/contract/route'

/**
 * Who may do what, written down from the interface's own table and never from the server's code: what these rows say
 * and what the service does must be the same for every endpoint of the contract.
 */

/** What a credential is worth to the application that a request addresses. */
export type Standing =
  | 'nobody'
  | 'dead'
  | 'stranger'
  | 'wallet'
  | 'Read'
  | 'Write'
  | 'Admin'
  | 'Pay'
  | 'operator'
  | 'owner'

/** The kinds of collection: what its owner says of its records. */
export const kinds = ['free', 'priced', 'key', 'private'] as const
export type Kind = (typeof kinds)[number]

/** The request goes on to its operation, or it is refused with a status and a code. */
export type Outcome = 'in' | `${number} ${string}`

type Row = Readonly<Record<Exclude<Standing, 'dead'>, Outcome>>

const needed = '401 UNAUTHORIZED'
const lacking = '403 FORBIDDEN'
const unknown = '404 COLLECTION_NOT_FOUND'
const unknownView = '404 VIEW_NOT_FOUND'
const payable = '402 PAYMENT_REQUIRED'

const everybody: Row = {
  nobody: 'in',
  stranger: 'in',
  wallet: 'in',
  Read: 'in',
  Write: 'in',
  Admin: 'in',
  Pay: 'in',
  operator: 'in',
  owner: 'in',
}
const outsiders = { nobody: needed, stranger: needed, wallet: needed } as const
const Admin: Row = { ...everybody, ...outsiders, Read: lacking, Write: lacking, Pay: lacking }
const owner: Row = { ...Admin, stranger: lacking, wallet: 'in', Admin: lacking }

/** Endpoints whose path says all. */
const byAccess: Readonly<Record<Exclude<Access, 'by-policy'>, Row>> = {
  public: everybody,
  Read: { ...Admin, Read: 'in' },
  Write: { ...Admin, Write: 'in' },
  'Read or Write': { ...Admin, Read: 'in', Write: 'in' },
  Admin,
  owner,
  operator: { ...owner, wallet: lacking, owner: lacking },
}

/** A collection's description, its preview, its price: with a key of the application, or where it is public. */
const describing: Readonly<Record<Kind, Row>> = {
  free: everybody,
  priced: everybody,
  key: { ...everybody, ...outsiders },
  private: { ...everybody, nobody: unknown, stranger: unknown, wallet: unknown },
}

/** Its records: free to Read and to the owner, for money to all others where they are public. */
const reading: Readonly<Record<Kind, Row>> = {
  free: everybody,
  priced: {
    nobody: payable,
    stranger: payable,
    wallet: payable,
    Read: 'in',
    Write: payable,
    Admin: 'in',
    Pay: payable,
    operator: payable,
    owner: 'in',
  },
  key: { ...everybody, ...outsiders, Write: lacking, Pay: lacking, operator: needed },
  private: {
    ...everybody,
    nobody: unknown,
    stranger: unknown,
    wallet: unknown,
    Write: lacking,
    Pay: lacking,
    operator: unknown,
  },
}

/** A view of a private collection is private, and is no view to those who may not know of it. */
const readingViews: Readonly<Record<Kind, Row>> = {
  ...reading,
  private: {
    ...reading.private,
    nobody: unknownView,
    stranger: unknownView,
    wallet: unknownView,
    operator: unknownView,
  },
}

/** Of a collection that is not public a query is for keys of the application, unless its owner says otherwise. */
const asking: Readonly<Record<Kind, Row>> = { ...reading, private: reading.key }
const describingQueries: Readonly<Record<Kind, Row>> = { ...describing, private: describing.key }

/** Past versions and proofs are for Read, whatever the policy; the operator reads no private data. */
const ofRead = byAccess.Read
const noOperator: Row = { ...ofRead, operator: lacking }
const past = { free: ofRead, priced: ofRead, key: noOperator, private: noOperator } as const

/** Endpoints that are judged by what they address. One of access `by-policy` without a row here fails. */
const byOperation: Readonly<Record<string, Readonly<Record<Kind, Row>>>> = {
  getCollection: describing,
  previewCollection: describing,
  quotePrice: describing,
  listRecords: reading,
  querySql: reading,
  getRecord: reading,
  queryView: readingViews,
  executeQuery: asking,
  getQuery: describingQueries,
  getQueryDocs: describingQueries,
  getRecordHistory: past,
  getRecordProof: past,
  listChanges: past,
}

/** What a credential meets at an endpoint, or undefined where nobody has written it down. */
export function expected(
  { operation, access }: { operation: string; access: Access },
  standing: Standing,
  kind: Kind,
): Outcome | undefined {
  if (standing === 'dead') return needed
  const row = byOperation[operation]?.[kind]
  if (row !== undefined) return row[standing]
  if (access === 'by-policy') return undefined
  // A wallet's movements are for its own signature.
  if (operation === 'listWalletEntries' && standing === 'wallet') return lacking
  return byAccess[access][standing]
}
