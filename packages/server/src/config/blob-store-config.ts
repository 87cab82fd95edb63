import { Type } from 'typebox'

/** The member `blob_mb_max` of the configuration file. */
export const BlobMegabytes = Type.Integer({
  minimum: 1,
  maximum: 65_536,
  description: 'MiB of the largest blob; 2 when not given, as the public clients expect',
})

/** The member `blob_store` of the configuration file. */
export const BlobStoreConfig = Type.Object(
  {
    endpoint: Type.String({
      pattern: '^https?://[^/]+(/.*)?$',
      description: 'the address of the store, without the bucket',
    }),
    region: Type.Optional(
      Type.String({ minLength: 1, description: 'its region; us-east-1 when not given' }),
    ),
    bucket: Type.String({
      pattern: '^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$',
      description: 'the bucket, which must be there',
    }),
    prefix: Type.Optional(
      Type.String({
        pattern: '^[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*/?$',
        maxLength: 200,
        description: 'begins the key of each object, so that several services can share a bucket',
      }),
    ),
    path_style: Type.Optional(
      Type.Boolean({
        description:
          'true: https://host/bucket/key, false: https://bucket.host/key; true when not given',
      }),
    ),
  },
  {
    additionalProperties: false,
    description:
      'an S3-compatible store for the files of blobs, in place of the data folder; see docs/operating.md',
  },
)
