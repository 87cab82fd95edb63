import type { Route } from '@tollbase/contract/route'
import { tolerated } from '@tollbase/contract/tolerated'
import { type Known, knownBy, refuseUnknown, withMember } from '../base/known-members.ts'

/** What a request to a route may have in its query string and its body. */
export type KnownInput = { readonly query: Known | undefined; readonly body: Known | undefined }

/** What the contract describes, and what it tolerates of public clients. */
export function knownInput(operationId: string, route: Route): KnownInput {
  const members = tolerated
    .filter(({ operations }) => operations === 'all' || operations.includes(operationId))
    .flatMap((one) => one.members)
  const empty = { members: new Map() }
  return {
    query: members
      .filter((name) => name.startsWith('?'))
      .reduce<Known | undefined>(
        (known, name) => withMember(known, `/${name.slice(1)}`),
        route.query === undefined ? empty : knownBy(route.query),
      ),
    body: members
      .filter((pointer) => pointer.startsWith('/'))
      .reduce<Known | undefined>(withMember, knownBy(route.body)),
  }
}

/** Throws 400 UNKNOWN_MEMBER for what a query string has beyond that. */
export function refuseUnknownTexts(known: KnownInput, texts: unknown): void {
  refuseUnknown(known.query, texts, '/query')
}

/** Throws 400 UNKNOWN_MEMBER for what a body has beyond that. */
export function refuseUnknownMembers(known: KnownInput, body: unknown): void {
  refuseUnknown(known.body, body, '')
}
