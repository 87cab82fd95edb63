import type { Route } from '@tollbase/contract/route'
import { tolerated } from '@tollbase/contract/tolerated-members'
import {
  addMember,
  type KnownMembers,
  refuseUnknown,
  toKnownMembers,
} from '../base/known-members.ts'

/** The members that a request to a route may have in its query string and its body. */
export type KnownInput = {
  readonly query: KnownMembers | undefined
  readonly body: KnownMembers | undefined
}

/** Returns the members that the contract describes, and those that it tolerates from public clients. */
export function toKnownInput(operationId: string, route: Route): KnownInput {
  const members = tolerated
    .filter(({ operations }) => operations === 'all' || operations.includes(operationId))
    .flatMap((one) => one.members)
  const empty = { members: new Map() }
  return {
    query: members
      .filter((name) => name.startsWith('?'))
      .reduce<KnownMembers | undefined>(
        (known, name) => addMember(known, `/${name.slice(1)}`),
        route.query === undefined ? empty : toKnownMembers(route.query),
      ),
    body: members
      .filter((pointer) => pointer.startsWith('/'))
      .reduce<KnownMembers | undefined>(
        addMember,
        route.body === undefined ? empty : toKnownMembers(route.body),
      ),
  }
}

/** Throws 400 UNKNOWN_MEMBER for any other member of a query string. */
export function refuseUnknownTexts(known: KnownInput, texts: unknown): void {
  refuseUnknown(known.query, texts, '/query')
}

/** Throws 400 UNKNOWN_MEMBER for any other member of a body. */
export function refuseUnknownMembers(known: KnownInput, body: unknown): void {
  refuseUnknown(known.body, body, '')
}
