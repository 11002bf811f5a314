<?php
/**
 * Which class a product has.
 *
 * @package Countersign
 */

namespace Countersign\WooCommerce;

defined( 'ABSPATH' ) || exit;

/**
 * The field of products and of their categories.
 */
final class Products {

	const META  = '_countersign_class';
	const NONCE = 'countersign_class_nonce';

	/**
	 * Add the fields.
	 */
	public static function register(): void {
		add_action( 'woocommerce_product_options_general_product_data', array( self::class, 'show_product_field' ) );
		add_action( 'woocommerce_admin_process_product_object', array( self::class, 'save_product_field' ) );
		add_action( 'product_cat_add_form_fields', array( self::class, 'show_new_category_field' ) );
		add_action( 'product_cat_edit_form_fields', array( self::class, 'show_category_field' ) );
		add_action( 'created_product_cat', array( self::class, 'save_category_field' ) );
		add_action( 'edited_product_cat', array( self::class, 'save_category_field' ) );
	}

	/**
	 * The classes to choose from, by their word in the API.
	 */
	public static function choices(): array {
		$choices = array(
			''                              => __( 'None', 'countersign-woocommerce' ),
			'accessory'                     => __( 'Accessory', 'countersign-woocommerce' ),
			'firearm_accessory'             => __( 'Firearm accessory', 'countersign-woocommerce' ),
			'manufacturing_machine'         => __( 'Manufacturing machine', 'countersign-woocommerce' ),
			'firearm_manufacturing_machine' => __( 'Firearm manufacturing machine', 'countersign-woocommerce' ),
			'barrel'                        => __( 'Barrel', 'countersign-woocommerce' ),
		);
		/**
		 * Filters the classes that a product can have: your notices may name others.
		 *
		 * @param array $choices Labels by class.
		 */
		return (array) apply_filters( 'countersign_product_classes', $choices );
	}

	/**
	 * The classes of products: their own, else all of their categories and of those above.
	 *
	 * @param int[] $product_ids Ids of products, not of variations.
	 * @return string[] Sorted, each once.
	 */
	public static function classes_of( array $product_ids ): array {
		$classes = array();
		foreach ( array_unique( array_filter( $product_ids ) ) as $id ) {
			$product = wc_get_product( $id );
			$own     = $product ? (string) $product->get_meta( self::META ) : '';
			if ( '' !== $own ) {
				$classes[] = $own;
				continue;
			}
			$terms = get_the_terms( $id, 'product_cat' );
			foreach ( is_array( $terms ) ? $terms : array() as $term ) {
				foreach ( array_merge( array( $term->term_id ), get_ancestors( $term->term_id, 'product_cat', 'taxonomy' ) ) as $one ) {
					$classes[] = (string) get_term_meta( $one, self::META, true );
				}
			}
		}
		$classes = array_values( array_unique( array_filter( $classes ) ) );
		sort( $classes );
		return $classes;
	}

	/**
	 * How many products and categories have a class of their own.
	 */
	public static function count_classed(): int {
		global $wpdb;
		return (int) $wpdb->get_var( $wpdb->prepare( "SELECT COUNT(*) FROM {$wpdb->postmeta} WHERE meta_key = %s AND meta_value <> ''", self::META ) )
			+ (int) $wpdb->get_var( $wpdb->prepare( "SELECT COUNT(*) FROM {$wpdb->termmeta} WHERE meta_key = %s AND meta_value <> ''", self::META ) );
	}

	/**
	 * The field of a product.
	 */
	public static function show_product_field(): void {
		echo '<div class="options_group">';
		woocommerce_wp_select(
			array(
				'id'          => self::META,
				'label'       => __( 'Countersign class', 'countersign-woocommerce' ),
				'options'     => self::choices(),
				'desc_tip'    => true,
				'description' => __( 'What the law calls this product. None: that of its categories.', 'countersign-woocommerce' ),
			)
		);
		wp_nonce_field( self::NONCE, self::NONCE, false );
		echo '</div>';
	}

	/**
	 * Store the field of a product, which WooCommerce saves afterwards.
	 *
	 * @param \WC_Product $product The product.
	 */
	public static function save_product_field( $product ): void {
		$class = self::posted_class();
		if ( null !== $class && current_user_can( 'edit_products' ) ) {
			$product->update_meta_data( self::META, $class );
		}
	}

	/**
	 * The field in the form for a new category.
	 */
	public static function show_new_category_field(): void {
		echo '<div class="form-field">';
		self::select( '' );
		echo '</div>';
	}

	/**
	 * The field in the form of a category.
	 *
	 * @param \WP_Term $term The category.
	 */
	public static function show_category_field( $term ): void {
		echo '<tr class="form-field"><th scope="row">' . esc_html__( 'Countersign class', 'countersign-woocommerce' ) . '</th><td>';
		self::select( (string) get_term_meta( $term->term_id, self::META, true ) );
		echo '</td></tr>';
	}

	/**
	 * Store the field of a category.
	 *
	 * @param int $term_id The category.
	 */
	public static function save_category_field( $term_id ): void {
		$class = self::posted_class();
		if ( null !== $class && current_user_can( 'edit_product_terms' ) ) {
			update_term_meta( (int) $term_id, self::META, $class );
		}
	}

	/**
	 * The class that a form sent; null if it is not one of ours.
	 */
	private static function posted_class(): ?string {
		if ( ! isset( $_POST[ self::META ], $_POST[ self::NONCE ] )
			|| ! wp_verify_nonce( sanitize_key( $_POST[ self::NONCE ] ), self::NONCE ) ) {
			return null;
		}
		$class = sanitize_key( wp_unslash( $_POST[ self::META ] ) );
		return array_key_exists( $class, self::choices() ) ? $class : null;
	}

	/**
	 * A list to choose from.
	 *
	 * @param string $chosen The present class.
	 */
	private static function select( string $chosen ): void {
		wp_nonce_field( self::NONCE, self::NONCE, false );
		echo '<label for="countersign-class">' . esc_html__( 'Countersign class', 'countersign-woocommerce' ) . '</label>';
		echo '<select id="countersign-class" name="' . esc_attr( self::META ) . '">';
		foreach ( self::choices() as $class => $label ) {
			echo '<option value="' . esc_attr( $class ) . '"' . selected( $chosen, $class, false ) . '>' . esc_html( $label ) . '</option>';
		}
		echo '</select>';
	}
}
