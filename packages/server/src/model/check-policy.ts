import { AccessPolicy } from '@tollbase/contract/collections'
import { nearest } from '../base/find-nearest.ts'
import { isRecord } from '../base/is-record.ts'
import { knownBy, refuseUnknown } from '../base/known-members.ts'
import { checkOf } from '../http/validate.ts'

const known = knownBy(AccessPolicy)
const check = checkOf(AccessPolicy)
/** A name that is so near to one of ours was meant to be it. */
const lettersWrong = 2

const names = Object.keys(AccessPolicy.properties)

/**
 * Refuses an access policy that would not mean what its sender thinks. One of which no member is known, or near to one
 * that is, speaks another language: it is kept as it is, and private.
 */
export function checkPolicy(policy: unknown, pointer = '/access_policy'): void {
  if (!isRecord(policy)) return
  const members = Object.keys(policy)
  if (members.length > 0 && members.every((name) => nearest(name, names).distance > lettersWrong))
    return
  refuseUnknown(known, policy, pointer)
  check(policy, pointer)
}
