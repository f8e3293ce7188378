/* SPDX-License-Identifier: Apache-2.0 */
#include "lib/io/es256.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/param_build.h>
#include <stdlib.h>
#include <string.h>

enum { DER_BYTES_MAX = 80, POINT_BYTES = 1 + 2 * TG_ES256_KEY_BYTES, EVEN = 2 };

struct tg_es256 {
    EVP_PKEY *pkey;
    uint8_t point[POINT_BYTES]; /* 4, x, y */
};

static EC_GROUP *curve(void)
{
    return EC_GROUP_new_by_curve_name(NID_X9_62_prime256v1);
}

static EVP_PKEY *pkey_of(const uint8_t point[POINT_BYTES], const BIGNUM *secret_or_null)
{
    EVP_PKEY *pkey = NULL;
    OSSL_PARAM_BLD *build = OSSL_PARAM_BLD_new();
    EVP_PKEY_CTX *context = EVP_PKEY_CTX_new_from_name(NULL, "EC", NULL);
    OSSL_PARAM *params = NULL;
    bool good =
        build != NULL && context != NULL &&
        OSSL_PARAM_BLD_push_utf8_string(build, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) &&
        OSSL_PARAM_BLD_push_octet_string(build, OSSL_PKEY_PARAM_PUB_KEY, point, POINT_BYTES) &&
        (secret_or_null == NULL ||
         OSSL_PARAM_BLD_push_BN(build, OSSL_PKEY_PARAM_PRIV_KEY, secret_or_null));
    params = good ? OSSL_PARAM_BLD_to_param(build) : NULL;
    if (params == NULL || EVP_PKEY_fromdata_init(context) != 1 ||
        EVP_PKEY_fromdata(context, &pkey,
                          secret_or_null != NULL ? EVP_PKEY_KEYPAIR : EVP_PKEY_PUBLIC_KEY,
                          params) != 1) {
        pkey = NULL;
    }
    OSSL_PARAM_free(params);
    OSSL_PARAM_BLD_free(build);
    EVP_PKEY_CTX_free(context);
    return pkey;
}

static int keep(const EC_GROUP *group, const EC_POINT *point, const BIGNUM *secret_or_null,
                struct tg_es256 **out_key)
{
    struct tg_es256 *key = calloc(1, sizeof(*key));
    if (key != NULL && EC_POINT_point2oct(group, point, POINT_CONVERSION_UNCOMPRESSED, key->point,
                                          POINT_BYTES, NULL) == POINT_BYTES) {
        key->pkey = pkey_of(key->point, secret_or_null);
    }
    if (key == NULL || key->pkey == NULL) {
        (void)tg_es256_free(key);
        return TG_ERR_MALFORMED;
    }
    *out_key = key;
    return 0;
}

/* The public point of a secret, and whether its y is even. */
static bool point_of(const EC_GROUP *group, const BIGNUM *secret, EC_POINT *point, bool *out_even)
{
    uint8_t text[1 + TG_ES256_KEY_BYTES];
    const BIGNUM *order = EC_GROUP_get0_order(group);
    if (BN_is_zero(secret) || BN_cmp(secret, order) >= 0 ||
        EC_POINT_mul(group, point, secret, NULL, NULL, NULL) != 1 ||
        EC_POINT_point2oct(group, point, POINT_CONVERSION_COMPRESSED, text, sizeof(text), NULL) !=
            sizeof(text)) {
        return false;
    }
    *out_even = text[0] == EVEN;
    return true;
}

int tg_es256_open_secret(const uint8_t secret[TG_ES256_KEY_BYTES], struct tg_es256 **out_key)
{
    EC_GROUP *group = curve();
    EC_POINT *point = group != NULL ? EC_POINT_new(group) : NULL;
    BIGNUM *number = BN_bin2bn(secret, TG_ES256_KEY_BYTES, NULL);
    bool even = false;
    int error = TG_ERR_MALFORMED;
    if (point != NULL && number != NULL && point_of(group, number, point, &even) && even) {
        error = keep(group, point, number, out_key);
    }
    BN_clear_free(number);
    EC_POINT_free(point);
    EC_GROUP_free(group);
    return error;
}

int tg_es256_open_public(const uint8_t x[TG_ES256_KEY_BYTES], struct tg_es256 **out_key)
{
    EC_GROUP *group = curve();
    EC_POINT *point = group != NULL ? EC_POINT_new(group) : NULL;
    uint8_t text[1 + TG_ES256_KEY_BYTES] = {EVEN};
    int error = TG_ERR_MALFORMED;
    memcpy(text + 1, x, TG_ES256_KEY_BYTES);
    if (point != NULL && EC_POINT_oct2point(group, point, text, sizeof(text), NULL) == 1) {
        error = keep(group, point, NULL, out_key);
    }
    EC_POINT_free(point);
    EC_GROUP_free(group);
    return error;
}

struct tg_es256 *tg_es256_free(struct tg_es256 *key)
{
    if (key != NULL) {
        EVP_PKEY_free(key->pkey);
        free(key);
    }
    return NULL;
}

void tg_es256_point(const struct tg_es256 *key, uint8_t out_x[TG_ES256_KEY_BYTES],
                    uint8_t out_y[TG_ES256_KEY_BYTES])
{
    memcpy(out_x, key->point + 1, TG_ES256_KEY_BYTES);
    memcpy(out_y, key->point + 1 + TG_ES256_KEY_BYTES, TG_ES256_KEY_BYTES);
}

int tg_es256_make(uint8_t out_secret[TG_ES256_KEY_BYTES], uint8_t out_x[TG_ES256_KEY_BYTES])
{
    EC_GROUP *group = curve();
    EC_POINT *point = group != NULL ? EC_POINT_new(group) : NULL;
    BIGNUM *secret = BN_new();
    bool even = false;
    bool good = point != NULL && secret != NULL;
    uint8_t text[1 + TG_ES256_KEY_BYTES];
    do {
        good = good && BN_priv_rand_range(secret, EC_GROUP_get0_order(group)) == 1;
    } while (good && BN_is_zero(secret));
    good = good && point_of(group, secret, point, &even) &&
           (even || (BN_sub(secret, EC_GROUP_get0_order(group), secret) == 1 &&
                     point_of(group, secret, point, &even))) &&
           BN_bn2binpad(secret, out_secret, TG_ES256_KEY_BYTES) == TG_ES256_KEY_BYTES &&
           EC_POINT_point2oct(group, point, POINT_CONVERSION_COMPRESSED, text, sizeof(text),
                              NULL) == sizeof(text);
    if (good) {
        memcpy(out_x, text + 1, TG_ES256_KEY_BYTES);
    }
    BN_clear_free(secret);
    EC_POINT_free(point);
    EC_GROUP_free(group);
    return good ? 0 : TG_ERR_STORE;
}

/* ---- signatures: DER of libcrypto <-> r and s of JOSE ---- */

/* Whether s is the lower of the two; if not and `other` is wanted, it becomes order - s. */
static bool is_low(const EC_GROUP *group, const BIGNUM *s, BIGNUM *other)
{
    const BIGNUM *order = EC_GROUP_get0_order(group);
    return BN_sub(other, order, s) == 1 && BN_cmp(s, other) <= 0;
}

static bool unpack(const EC_GROUP *group, const uint8_t *der, size_t length, uint8_t *out_signature)
{
    ECDSA_SIG *pair = d2i_ECDSA_SIG(NULL, &der, (long)length);
    BIGNUM *other = BN_new();
    bool good = pair != NULL && other != NULL;
    if (good) {
        const BIGNUM *s = ECDSA_SIG_get0_s(pair);
        const BIGNUM *low = is_low(group, s, other) ? s : other;
        good = BN_bn2binpad(ECDSA_SIG_get0_r(pair), out_signature, TG_ES256_KEY_BYTES) ==
                   TG_ES256_KEY_BYTES &&
               BN_bn2binpad(low, out_signature + TG_ES256_KEY_BYTES, TG_ES256_KEY_BYTES) ==
                   TG_ES256_KEY_BYTES;
    }
    BN_free(other);
    ECDSA_SIG_free(pair);
    return good;
}

int tg_es256_sign(const struct tg_es256 *key, const void *text, size_t length,
                  uint8_t out_signature[TG_ES256_SIGNATURE_BYTES])
{
    uint8_t der[DER_BYTES_MAX];
    size_t der_length = sizeof(der);
    EC_GROUP *group = curve();
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = group != NULL && context != NULL &&
                EVP_DigestSignInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
                EVP_DigestSign(context, der, &der_length, text, length) == 1 &&
                unpack(group, der, der_length, out_signature);
    EVP_MD_CTX_free(context);
    EC_GROUP_free(group);
    return good ? 0 : TG_ERR_STORE;
}

/* DER of a pair with the lower s; 0: it is none. */
static int pack(const uint8_t *signature, uint8_t *out_der)
{
    EC_GROUP *group = curve();
    ECDSA_SIG *pair = ECDSA_SIG_new();
    BIGNUM *r = BN_bin2bn(signature, TG_ES256_KEY_BYTES, NULL);
    BIGNUM *s = BN_bin2bn(signature + TG_ES256_KEY_BYTES, TG_ES256_KEY_BYTES, NULL);
    BIGNUM *other = BN_new();
    int length = 0;
    if (group != NULL && pair != NULL && r != NULL && s != NULL && other != NULL &&
        is_low(group, s, other) && ECDSA_SIG_set0(pair, r, s) == 1) {
        r = s = NULL; /* the pair's */
        length = i2d_ECDSA_SIG(pair, &out_der);
    }
    BN_free(other);
    BN_free(s);
    BN_free(r);
    ECDSA_SIG_free(pair);
    EC_GROUP_free(group);
    return length > 0 ? length : 0;
}

bool tg_es256_verify(const struct tg_es256 *key, const void *text, size_t length,
                     const uint8_t signature[TG_ES256_SIGNATURE_BYTES])
{
    uint8_t der[DER_BYTES_MAX];
    const int der_length = pack(signature, der);
    EVP_MD_CTX *context = EVP_MD_CTX_new();
    bool good = der_length > 0 && context != NULL &&
                EVP_DigestVerifyInit(context, NULL, EVP_sha256(), NULL, key->pkey) == 1 &&
                EVP_DigestVerify(context, der, (size_t)der_length, text, length) == 1;
    EVP_MD_CTX_free(context);
    return good;
}
