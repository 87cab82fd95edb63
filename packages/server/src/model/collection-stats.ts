export type CollectionStats = {
  readonly documents: number
  readonly bytes: number
  readonly versions: number
}

export const noStats: CollectionStats = { documents: 0, bytes: 0, versions: 0 }
