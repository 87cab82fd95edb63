/** The permissions of keys, and the keys that get each one where no list of permissions is sent. */
export const permissions = {
  Read: { isInNewKeys: true, isInFirstKey: true },
  Write: { isInNewKeys: false, isInFirstKey: true },
  Admin: { isInNewKeys: false, isInFirstKey: true },
  // A key that pays needs no right in any application.
  Pay: { isInNewKeys: false, isInFirstKey: false },
} as const

export type Permission = keyof typeof permissions
export const permissionNames = Object.keys(permissions) as readonly Permission[]

type Right = {
  /** The permissions of which a key must have one. */
  readonly oneOf: readonly Permission[]
  /** True where the routes that ask for it can make an application larger. */
  readonly stores: boolean
}

/** The rights that routes ask for. Access checks, openapi and documentation follow from this table. */
export const rights = {
  Read: { oneOf: ['Read', 'Admin'], stores: false },
  Write: { oneOf: ['Write', 'Admin'], stores: true },
  'Read or Write': { oneOf: ['Read', 'Write', 'Admin'], stores: false },
  Admin: { oneOf: ['Admin'], stores: true },
} as const satisfies Readonly<Record<string, Right>>

export type Permitted = keyof typeof rights

/** Returns whether a route asks for a right, and not for another kind of caller. */
export function isRight(access: string): access is Permitted {
  return Object.hasOwn(rights, access)
}

/** Returns whether a key with these permissions has the right. */
export function hasRight(held: readonly Permission[], right: Permitted): boolean {
  return rights[right].oneOf.some((one) => held.includes(one))
}

/** Lists the permissions of a key that is created without a list of them, or of an application's first key. */
export function listDefaults(kind: 'isInNewKeys' | 'isInFirstKey'): Permission[] {
  return permissionNames.filter((name) => permissions[name][kind])
}
