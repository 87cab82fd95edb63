import { AccessPolicy } from '@tollbase/contract/access-policy'
import { findNearest } from '../base/find-nearest.ts'
import { isRecord } from '../base/is-record.ts'
import { refuseUnknown, toKnownMembers } from '../base/known-members.ts'
import { compileCheck } from '../http/validate.ts'

const known = toKnownMembers(AccessPolicy)
const check = compileCheck(AccessPolicy)
/** A name within this many letters of one of ours was meant to be it. */
const lettersWrong = 2

/** The most members of a policy that are compared with ours, letter by letter. */
const comparedMax = 32

const names = Object.keys(AccessPolicy.properties)

/**
 * Refuses an access policy that would not mean what its sender thinks. A policy without any known member, and with
 * none nearly known among its first, is in another language: it is kept as it is, and counts as private.
 */
export function checkPolicy(policy: unknown, pointer = '/access_policy'): void {
  if (!isRecord(policy)) return
  const members = Object.keys(policy)
  const isOurs =
    members.some((name) => names.includes(name)) ||
    members.slice(0, comparedMax).some((name) => findNearest(name, names).distance <= lettersWrong)
  if (members.length > 0 && !isOurs) return
  refuseUnknown(known, policy, pointer)
  check(policy, pointer)
}
