import type { Catalog } from './catalog.ts'
import { isQueryable } from './encrypted-collections.ts'

/** Describes which data of an application is encrypted. */
export function describeEncryption({ byName, encryption }: Catalog) {
  const encrypted = [...byName.values()].filter((collection) => collection.encrypted === true)
  return {
    private_app: encryption.private_app,
    encrypted_collections: encrypted.map(({ name }) => name),
    queryable_collections: encrypted.filter(isQueryable).map(({ name }) => name),
  }
}
