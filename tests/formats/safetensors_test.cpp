// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/formats/safetensors/safetensors.h"

#include <array>
#include <cmath>
#include <limits>

#include "core/base/rng.h"
#include "tests/formats/test_files.h"

namespace mw::formats {
namespace {

using testing::HasSubstr;

std::span<const std::byte> bytes_of(const std::vector<float>& v) {
  return std::as_bytes(std::span(v));
}

TEST(Safetensors, RoundTrips) {
  const Scratch folder;
  const std::vector<float> a{1, 2, 3, 4, 5, 6}, b{7.5f};
  const std::vector<std::uint16_t> half{0x3f80, 0xc000};
  write_safetensors(folder / "x.safetensors",
                    std::vector<TensorData>{{"b", TensorDType::f32, {}, bytes_of(b)},
                                            {"half", TensorDType::bf16, {2, 1}, std::as_bytes(std::span(half))},
                                            {"a", TensorDType::f32, {2, 3}, bytes_of(a)},
                                            {"none", TensorDType::f32, {0, 7}, {}}},
                    {{"format", "pt"}});
  const SafetensorsFile file(folder / "x.safetensors");
  ASSERT_EQ(file.tensors().size(), 4u);
  EXPECT_EQ(file.metadata().at("format"), "pt");
  EXPECT_EQ(file.find("a")->shape, (std::vector<std::int64_t>{2, 3}));
  EXPECT_EQ(file.find("b")->elements(), 1);
  EXPECT_EQ(file.find("none")->elements(), 0);
  EXPECT_EQ(file.find("c"), nullptr);
  std::vector<float> middle(3), widened(2);
  file.read_f32(*file.find("a"), 2, middle);
  EXPECT_THAT(middle, testing::ElementsAre(3, 4, 5));
  file.read_f32(*file.find("half"), 0, widened);
  EXPECT_THAT(widened, testing::ElementsAre(1, -2));
}

// The bytes that the reference writer (safetensors 0.6) produces for the same tensors.
TEST(Safetensors, WritesReferenceLayout) {
  const Scratch folder;
  const std::array<std::byte, 8> zeros{};
  const auto z = [&](size_t n) { return std::span(zeros).first(n); };
  write_safetensors(folder / "x",
                    std::vector<TensorData>{{"bool", TensorDType::boolean, {1}, z(1)},
                                            {"u8", TensorDType::u8, {1}, z(1)},
                                            {"zf32", TensorDType::f32, {1}, z(4)},
                                            {"af32", TensorDType::f32, {1}, z(4)},
                                            {"i16", TensorDType::i16, {1}, z(2)},
                                            {"f16", TensorDType::f16, {1}, z(2)},
                                            {"bf16", TensorDType::bf16, {1}, z(2)},
                                            {"i8", TensorDType::i8, {1}, z(1)},
                                            {"i32", TensorDType::i32, {1}, z(4)},
                                            {"f64", TensorDType::f64, {1}, z(8)},
                                            {"i64", TensorDType::i64, {1}, z(8)}},
                    {{"format", "pt"}});
  const std::string header =
      R"({"__metadata__":{"format":"pt"},"i64":{"dtype":"I64","shape":[1],"data_offsets":[0,8]},)"
      R"("f64":{"dtype":"F64","shape":[1],"data_offsets":[8,16]},"af32":{"dtype":"F32","shape":[1],"data_offsets":[16,20]},)"
      R"("zf32":{"dtype":"F32","shape":[1],"data_offsets":[20,24]},"i32":{"dtype":"I32","shape":[1],"data_offsets":[24,28]},)"
      R"("bf16":{"dtype":"BF16","shape":[1],"data_offsets":[28,30]},"f16":{"dtype":"F16","shape":[1],"data_offsets":[30,32]},)"
      R"("i16":{"dtype":"I16","shape":[1],"data_offsets":[32,34]},"i8":{"dtype":"I8","shape":[1],"data_offsets":[34,35]},)"
      R"("u8":{"dtype":"U8","shape":[1],"data_offsets":[35,36]},"bool":{"dtype":"BOOL","shape":[1],"data_offsets":[36,37]}})";
  const std::string padded = header + std::string((8 - header.size() % 8) % 8, ' ');
  EXPECT_EQ(get(folder / "x"), safetensors_bytes(padded, std::string(37, '\0')));
}

TEST(Safetensors, StreamsLargeTensorsInPieces) {
  const Scratch folder;
  std::vector<float> values(300'000);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  const std::vector<TensorSpec> specs{{"t", TensorDType::f32, {300, 1000}}};
  write_safetensors(folder / "x", specs, [&](size_t, const ByteSink& sink) {
    for (size_t i = 0; i < values.size(); i += 7000)
      sink(std::as_bytes(std::span(values).subspan(i, std::min<size_t>(7000, values.size() - i))));
  });
  const SafetensorsFile file(folder / "x");
  std::vector<float> back(values.size());
  file.read_f32(file.tensors()[0], 0, back);
  EXPECT_EQ(back, values);
}

TEST(Safetensors, KeepsOldFileIfWritingFails) {
  const Scratch folder;
  put(folder / "x", "old");
  const std::vector<float> three{1, 2, 3};
  const auto write = [&] {
    write_safetensors(folder / "x", std::vector<TensorData>{{"t", TensorDType::f32, {2}, bytes_of(three)}});
  };
  EXPECT_THAT(problem_of(write).message, HasSubstr("match"));
  EXPECT_EQ(get(folder / "x"), "old");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.path()), {}), 1) << "a part file was left";
}

TEST(Safetensors, RefusesToWriteDuplicateNames) {
  const Scratch folder;
  const std::vector<float> one{1};
  const std::vector<TensorData> twice{{"t", TensorDType::f32, {1}, bytes_of(one)},
                                      {"t", TensorDType::f32, {1}, bytes_of(one)}};
  EXPECT_THROW(write_safetensors(folder / "x", twice), Error);
}

TEST(Safetensors, ReportsMissingFolder) {
  const std::vector<float> one{1};
  const auto write = [&] {
    write_safetensors("/nonexistent/folder/x", std::vector<TensorData>{{"t", TensorDType::f32, {1}, bytes_of(one)}});
  };
  EXPECT_EQ(problem_of(write).file, "/nonexistent/folder/x");
}

struct BrokenHeader {
  const char* name;
  std::string bytes;
  const char* says;
};
void PrintTo(const BrokenHeader& b, std::ostream* os) {
  *os << b.name;
}

std::string entry(const std::string& dtype, const std::string& shape, const std::string& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

class BrokenFile : public testing::TestWithParam<BrokenHeader> {};

TEST_P(BrokenFile, IsRejected) {
  const Scratch folder;
  put(folder / "x", GetParam().bytes);
  const Problem p = problem_of([&] { SafetensorsFile file(folder / "x"); });
  EXPECT_THAT(p.message + " " + p.place, HasSubstr(GetParam().says));
  EXPECT_THAT(p.file, HasSubstr((folder / "x").string()));
}

const std::string kGood = entry("F32", "[2]", "[0,8]");
const std::string k8(8, 'd');

INSTANTIATE_TEST_SUITE_P(
    Safetensors, BrokenFile,
    testing::Values(
        BrokenHeader{"empty", "", "too short"}, BrokenHeader{"seven_bytes", "1234567", "too short"},
        BrokenHeader{"header_beyond_limit", std::string("\x01\xe1\xf5\x05\0\0\0\0", 8) + "{}", "header is too large"},
        BrokenHeader{"header_length_all_ones", std::string(8, '\xff') + "{}", "header is too large"},
        BrokenHeader{"header_beyond_file", std::string("\x10\0\0\0\0\0\0\0{}", 10), "ends inside its header"},
        BrokenHeader{"empty_header", safetensors_bytes("", ""), "not a JSON object"},
        BrokenHeader{"header_starts_with_space", safetensors_bytes(" {}", ""), "not a JSON object"},
        BrokenHeader{"header_is_a_list", safetensors_bytes("[]", ""), "not a JSON object"},
        BrokenHeader{"malformed", safetensors_bytes("{\"a\":", ""), "not valid JSON"},
        BrokenHeader{"not_utf8", safetensors_bytes("{\"a\xff\":" + kGood + "}", k8), "JSON"},
        BrokenHeader{"duplicate", safetensors_bytes("{\"a\":" + kGood + ",\"a\":" + kGood + "}", k8), "duplicate key"},
        BrokenHeader{"hole", safetensors_bytes("{\"a\":" + entry("F32", "[1]", "[4,8]") + "}", k8), "a gap"},
        BrokenHeader{
            "hole_between",
            safetensors_bytes("{\"a\":" + entry("U8", "[2]", "[0,2]") + ",\"b\":" + entry("U8", "[2]", "[6,8]") + "}",
                              k8),
            "tensor b"},
        BrokenHeader{
            "overlap",
            safetensors_bytes("{\"a\":" + entry("U8", "[5]", "[0,5]") + ",\"b\":" + entry("U8", "[4]", "[4,8]") + "}",
                              k8),
            "overlaps"},
        BrokenHeader{"backwards", safetensors_bytes("{\"a\":" + entry("F32", "[2]", "[8,0]") + "}", k8),
                     "end before they begin"},
        BrokenHeader{"negative_offset", safetensors_bytes("{\"a\":" + entry("F32", "[2]", "[-1,7]") + "}", k8),
                     "non-negative integer"},
        BrokenHeader{"fractional_offset", safetensors_bytes("{\"a\":" + entry("F32", "[2]", "[0,8.0]") + "}", k8),
                     "non-negative integer"},
        BrokenHeader{"huge_offset",
                     safetensors_bytes("{\"a\":" + entry("F32", "[2]", "[0,99999999999999999999]") + "}", k8),
                     "non-negative integer"},
        BrokenHeader{"three_offsets", safetensors_bytes("{\"a\":" + entry("F32", "[2]", "[0,4,8]") + "}", k8),
                     "not a pair"},
        BrokenHeader{"negative_shape", safetensors_bytes("{\"a\":" + entry("F32", "[-2]", "[0,8]") + "}", k8),
                     "non-negative integer"},
        BrokenHeader{"shape_overflow",
                     safetensors_bytes("{\"a\":" + entry("F32", "[4294967296,4294967296]", "[0,8]") + "}", k8),
                     "too large"},
        BrokenHeader{"bits_overflow",
                     safetensors_bytes("{\"a\":" + entry("F32", "[4611686018427387906]", "[0,8]") + "}", k8),
                     "too large"},
        BrokenHeader{"wrong_size", safetensors_bytes("{\"a\":" + entry("F32", "[3]", "[0,8]") + "}", k8), "match"},
        BrokenHeader{"half_byte", safetensors_bytes("{\"a\":" + entry("F4", "[3]", "[0,1]") + "}", "d"),
                     "whole number of bytes"},
        BrokenHeader{"short_data", safetensors_bytes("{\"a\":" + kGood + "}", "1234567"), "too short"},
        BrokenHeader{"trailing_data", safetensors_bytes("{\"a\":" + kGood + "}", k8 + "x"), "after the last tensor"},
        BrokenHeader{"metadata_number", safetensors_bytes("{\"__metadata__\":{\"a\":1}}", ""),
                     "wrong type __metadata__.a"},
        BrokenHeader{"metadata_list", safetensors_bytes("{\"__metadata__\":[]}", ""), "wrong type"},
        BrokenHeader{"entry_is_a_number", safetensors_bytes("{\"a\":1}", ""), "wrong type"},
        BrokenHeader{"no_dtype", safetensors_bytes("{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", k8), "missing"},
        BrokenHeader{"dtype_number",
                     safetensors_bytes("{\"a\":{\"dtype\":1,\"shape\":[2],\"data_offsets\":[0,8]}}", k8), "dtype"},
        BrokenHeader{"shape_object", safetensors_bytes("{\"a\":" + entry("F32", "{}", "[0,8]") + "}", k8), "shape"},
        BrokenHeader{"deep", safetensors_bytes("{\"a\":" + std::string(5000, '[') + std::string(5000, ']') + "}", ""),
                     "nesting"}),
    [](const auto& p) { return std::string(p.param.name); });

TEST(Safetensors, RejectsMissingFileAndFolder) {
  EXPECT_THROW(SafetensorsFile("/nonexistent.safetensors"), Error);
  const Scratch folder;
  EXPECT_THROW(SafetensorsFile(folder.path()), Error);
}

TEST(Safetensors, AcceptsUnknownTypesUntilRead) {
  const Scratch folder;
  put(folder / "x",
      safetensors_bytes(
          "{\"a\":" + entry("F7_NEW", "[2]", "[0,5]") + ",\"b\":" + entry("F8_E4M3", "[3]", "[5,8]") + "}", k8));
  const SafetensorsFile file(folder / "x");
  EXPECT_EQ(file.find("a")->dtype, TensorDType::other);
  std::vector<float> out(2);
  EXPECT_THAT(problem_of([&] { file.read_f32(*file.find("a"), 0, out); }).found, "F7_NEW");
  std::vector<std::byte> raw(2);
  EXPECT_THROW(file.read(*file.find("b"), 0, 2, raw), Error);
}

TEST(Safetensors, RejectsReadsOutsideTensor) {
  const Scratch folder;
  put(folder / "x", safetensors_bytes("{\"a\":" + kGood + "}", k8));
  const SafetensorsFile file(folder / "x");
  std::vector<float> out(2);
  EXPECT_NO_THROW(file.read_f32(file.tensors()[0], 0, out));
  EXPECT_THROW(file.read_f32(file.tensors()[0], 1, out), Error);
  EXPECT_THROW(file.read_f32(file.tensors()[0], -1, out), Error);
  EXPECT_THROW(file.read_f32(file.tensors()[0], std::numeric_limits<std::int64_t>::max(), out), Error);
}

TEST(Safetensors, DetectsFileTruncatedAfterOpening) {
  const Scratch folder;
  put(folder / "x", safetensors_bytes("{\"a\":" + kGood + "}", k8));
  const SafetensorsFile file(folder / "x");
  std::filesystem::resize_file(folder / "x", std::filesystem::file_size(folder / "x") - 1);
  std::vector<float> out(2);
  EXPECT_THAT(problem_of([&] { file.read_f32(file.tensors()[0], 0, out); }).message, HasSubstr("shorter"));
}

// A header of many entries would take seconds with quadratic reading.
TEST(Safetensors, ReadsHundredThousandTensorsQuickly) {
  MemoryFile memory;
  std::string header = "{";
  for (int i = 0; i < 100'000; ++i)
    header += (i ? ",\"t" : "\"t") + std::to_string(i) + "\":" + entry("U8", "[0]", "[0,0]");
  memory.set(safetensors_bytes(header + "}", ""));
  const SafetensorsFile file(memory.path());
  EXPECT_EQ(file.tensors().size(), 100'000u);
  EXPECT_NE(file.find("t99999"), nullptr);
}

std::string small_file(const Scratch& folder) {
  const std::vector<float> v{1, 2, 3, 4};
  write_safetensors(folder / "s",
                    std::vector<TensorData>{{"model.a", TensorDType::f32, {2, 2}, bytes_of(v)},
                                            {"model.b", TensorDType::bf16, {4}, bytes_of(v).first(8)},
                                            {"c", TensorDType::u8, {3}, bytes_of(v).first(3)}},
                    {{"format", "pt"}});
  return get(folder / "s");
}

// Opens the file and, if it is accepted, reads every tensor. Only Error may be thrown.
void open_and_read(MemoryFile& memory, const std::string& bytes) {
  memory.set(bytes);
  try {
    const SafetensorsFile file(memory.path());
    for (const TensorInfo& t : file.tensors()) {
      ASSERT_LE(t.end, bytes.size());
      std::vector<float> values(static_cast<size_t>(std::min<std::int64_t>(t.elements(), 64)));
      file.read_f32(t, 0, values);
    }
  } catch (const Error&) {
  }
}

TEST(SafetensorsMutation, RejectsEveryTruncation) {
  const Scratch folder;
  MemoryFile memory;
  const std::string good = small_file(folder);
  for (size_t n = 0; n < good.size(); ++n) {
    memory.set(good.substr(0, n));
    EXPECT_THROW(SafetensorsFile(memory.path()), Error) << n << " of " << good.size() << " bytes";
  }
}

TEST(SafetensorsMutation, FlippedBytesThrowOnlyErrors) {
  const Scratch folder;
  MemoryFile memory;
  const std::string good = small_file(folder);
  const size_t header_end = good.size() - 27;
  Rng rng{42};
  for (int round = 0; round < 4000; ++round) {
    std::string bytes = good;
    for (std::uint64_t flips = 1 + rng.below(4); flips > 0; --flips)
      bytes[rng.below(header_end)] = static_cast<char>(rng.below(256));
    open_and_read(memory, bytes);
  }
}

TEST(SafetensorsMutation, SplicedHeadersThrowOnlyErrors) {
  const Scratch folder;
  MemoryFile memory;
  const std::string good = small_file(folder);
  const std::string header = good.substr(8, good.size() - 8 - 27), data = good.substr(good.size() - 27);
  const std::array<const char*, 12> tokens{"{",  "}",    "[",        "]", ",", ":", "\"", "0", "18446744073709551615",
                                           "-1", "null", "\\ud800\""};
  Rng rng{7};
  for (int round = 0; round < 3000; ++round) {
    std::string h = header;
    const size_t from = rng.below(h.size()), cut = rng.below(12);
    h.replace(from, cut, tokens[rng.below(tokens.size())]);
    open_and_read(memory, safetensors_bytes(h, data));
  }
}

TEST(Floats, HalfPrecisionIsExact) {
  EXPECT_EQ(from_f16(0x3c00), 1.0f);
  EXPECT_EQ(from_f16(0xc000), -2.0f);
  EXPECT_EQ(from_f16(0x7bff), 65504.0f);
  EXPECT_EQ(from_f16(0x0001), 0x1p-24f);
  EXPECT_EQ(from_f16(0x83ff), -0x3ffp-24f);
  EXPECT_TRUE(std::signbit(from_f16(0x8000)));
  EXPECT_EQ(from_f16(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(from_f16(0x7e01)));
}

TEST(Floats, Bf16RoundsToNearestEven) {
  EXPECT_EQ(to_bf16(1.0f), 0x3f80);
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808000u)), 0x3f80);  // tie, even stays
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f818000u)), 0x3f82);  // tie, odd goes up
  EXPECT_EQ(to_bf16(std::bit_cast<float>(0x3f808001u)), 0x3f81);
  EXPECT_EQ(to_bf16(std::numeric_limits<float>::max()), 0x7f80);  // overflows to infinity, as everywhere
  EXPECT_TRUE(std::isnan(from_bf16(to_bf16(std::bit_cast<float>(0x7f800001u)))));
  for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float f = from_bf16(static_cast<std::uint16_t>(bits));
    if (!std::isnan(f)) {
      ASSERT_EQ(to_bf16(f), bits);
    }
  }
}

TEST(Floats, ReadsEveryFloatTypeAsF32) {
  const Scratch folder;
  const std::vector<double> d{1.5, -0.25};
  const std::vector<std::uint16_t> h{0x3e00, 0xb400};
  write_safetensors(folder / "x", std::vector<TensorData>{{"d", TensorDType::f64, {2}, std::as_bytes(std::span(d))},
                                                          {"h", TensorDType::f16, {2}, std::as_bytes(std::span(h))}});
  const SafetensorsFile file(folder / "x");
  std::vector<float> out(2);
  for (const char* name : {"d", "h"}) {
    file.read_f32(*file.find(name), 0, out);
    EXPECT_THAT(out, testing::ElementsAre(1.5f, -0.25f));
  }
}

}  // namespace
}  // namespace mw::formats
