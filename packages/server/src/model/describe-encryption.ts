import type { Catalog } from './catalog.ts'

/** Describes which data of an application is encrypted. */
export function describeEncryption({ byName, encryption }: Catalog) {
  const encrypted = [...byName.values()].filter((collection) => collection.encrypted === true)
  return {
    private_app: encryption.private_app,
    encrypted_collections: encrypted.map(({ name }) => name),
  }
}
