import type { Access, Route, Shows } from '@tollbase/contract/route'

/**
 * The table of who may do what, written down from the interface's own table and never from the server's code: these
 * rows and the service must agree for every endpoint of the contract.
 */

/** The standing that a credential has with the application that a request addresses. */
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

/** The kinds of collection, by the access that the owner declared. */
export const kinds = ['free', 'priced', 'unsaid', 'sold', 'key', 'private'] as const
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

/** Endpoints whose path decides the access. */
const byAccess: Readonly<Record<Exclude<Access, 'by-policy'>, Row>> = {
  public: everybody,
  Read: { ...Admin, Read: 'in' },
  Write: { ...Admin, Write: 'in' },
  'Read or Write': { ...Admin, Read: 'in', Write: 'in' },
  Admin,
  owner,
  // Endpoints that are open where wallets may register, as on a devnet.
  registrar: owner,
  operator: { ...owner, wallet: lacking, owner: lacking },
}

/** A definition, its preview and its price are for those who may Read, and for strangers where it is open to them. */
const describing: Readonly<Record<Kind, Row>> = {
  free: everybody,
  priced: everybody,
  unsaid: { ...everybody, ...outsiders, Write: lacking, Pay: lacking },
  sold: everybody,
  key: { ...everybody, ...outsiders, Write: lacking, Pay: lacking },
  private: {
    ...everybody,
    nobody: unknown,
    stranger: unknown,
    wallet: unknown,
    Write: lacking,
    Pay: lacking,
  },
}

const forMoney: Row = {
  nobody: payable,
  stranger: payable,
  wallet: payable,
  Read: 'in',
  Write: payable,
  Admin: 'in',
  Pay: payable,
  operator: payable,
  owner: 'in',
}
const forKeys: Row = {
  ...everybody,
  ...outsiders,
  Write: lacking,
  Pay: lacking,
  operator: needed,
}

/**
 * Access to records: free to Read and to the owner; for money to all others where the collection is public, or
 * where it has a price and no declared readers.
 */
const reading: Readonly<Record<Kind, Row>> = {
  free: everybody,
  priced: forMoney,
  unsaid: forKeys,
  sold: forMoney,
  key: forKeys,
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

/** A view of a private collection is private, and does not exist for those who may not know of it. */
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

/** A query of a collection that is not public is for keys of the application, unless its owner says otherwise. */
const asking: Readonly<Record<Kind, Row>> = { ...reading, private: reading.key }
const describingQueries: Readonly<Record<Kind, Row>> = { ...describing, private: describing.key }

/** The log of an application that has something open to strangers, as here. */
const openLog: Readonly<Record<Kind, Row>> = {
  free: everybody,
  priced: everybody,
  unsaid: everybody,
  sold: everybody,
  key: everybody,
  private: everybody,
}

/** On sold data even the fact that a key has a record has its price. */
const proving: Readonly<Record<Kind, Row>> = {
  ...reading,
  priced: { ...everybody, ...outsiders, Write: lacking, Pay: lacking },
  sold: { ...everybody, ...outsiders, Write: lacking, Pay: lacking },
}

/** A blob is priced by its size, so one that is not there is told to all who may buy. */
const gettingBlobs: Readonly<Record<Kind, Row>> = { ...reading, priced: everybody, sold: everybody }

/**
 * Endpoints whose access depends on what their answers show, as the contract states it, and for those that address
 * a view or a query on its sources.
 */
const byPolicy: Partial<Readonly<Record<Shows, Readonly<Record<Kind, Row>>>>> = {
  definitions: describing,
  records: reading,
  hashes: openLog,
}
const granting = Object.fromEntries(
  kinds.map((kind) => [kind, { ...Admin, wallet: 'in' }]),
) as Readonly<Record<Kind, Row>>
/** To migrate records, or to erase those that have a value, is to read them. */
const changingAll: Readonly<Record<Kind, Row>> = {
  free: Admin,
  priced: Admin,
  unsaid: { ...Admin, operator: lacking },
  sold: Admin,
  key: { ...Admin, operator: lacking },
  private: { ...Admin, operator: lacking },
}

const byOperation: Readonly<Record<string, Readonly<Record<Kind, Row>>>> = {
  quotePrice: describing,
  getRecordProof: proving,
  getBlob: gettingBlobs,
  // Its shape and its price are for everybody; tests of the operation say who may go on.
  updateEncryption: openLog,
  // A wallet has its own; none of them is another's to know.
  listAuthorizations: granting,
  createAuthorization: granting,
  revokeAuthorization: granting,
  migrateCollection: changingAll,
  eraseSubject: changingAll,
  queryView: readingViews,
  executeQuery: asking,
  getQuery: describingQueries,
  getQueryDocs: describingQueries,
}

/** An endpoint that needs Read shows the operator no records but those that are open to strangers. */
const noOperator: Row = { ...byAccess.Read, operator: lacking }
const past: Readonly<Record<Kind, Row>> = {
  free: byAccess.Read,
  priced: byAccess.Read,
  unsaid: noOperator,
  sold: byAccess.Read,
  key: noOperator,
  private: noOperator,
}
type Stated = { readonly operation: string } & Pick<Route, 'access' | 'shows'>

/** Returns the outcome that a credential meets at an endpoint, or undefined where nobody has written it down. */
export function findExpected(
  { operation, access, shows }: Stated,
  standing: Standing,
  kind: Kind,
): Outcome | undefined {
  if (standing === 'dead') return needed
  // The movements of a wallet need its own signature, and its money, which the operator may not touch either.
  if (/^listWallet(Channels|Entries|Transactions)$/.test(operation) && standing === 'wallet')
    return lacking
  if (operation === 'withdrawFromWallet' && (standing === 'wallet' || standing === 'operator'))
    return lacking
  const own = byOperation[operation]?.[kind]
  if (own !== undefined) return own[standing]
  if (access === 'by-policy') return byPolicy[shows]?.[kind][standing]
  if (access === 'Read' && shows === 'records') return past[kind][standing]
  return byAccess[access][standing]
}
